// SPDX-License-Identifier: Apache-2.0
//
// Files that are read keep a descriptor only while they are among those read most recently, so that
// there may be more of them than the process may have open.

#pragma once

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>

namespace npyfs {

// How many descriptors the pool keeps at most: three quarters of what the process may have open now
// (RLIMIT_NOFILE), with room for at least 32 others, but no more than 100,000. While fewer are
// wanted, none is ever closed.
std::size_t most_pooled_descriptors();

// A descriptor of a file that can be opened again. It is closed, while nobody uses it, where others
// were used more recently. Any thread.
class PooledDescriptor {
 public:
  PooledDescriptor() = default;
  PooledDescriptor(const PooledDescriptor&) = delete;
  PooledDescriptor& operator=(const PooledDescriptor&) = delete;
  // Closes it. Nobody may use it.
  ~PooledDescriptor();

  // The descriptor, to be given back by release() and open until then. -1: it is closed, and there
  // is nothing to give back. Takes no lock.
  int acquire();
  void release() { state_.fetch_sub(kOneUser, std::memory_order_release); }
  // Takes `fd` and answers as acquire(): with the descriptor of another thread that was faster, if
  // there is one. May close others.
  int keep_and_acquire(int fd);

 private:
  friend class DescriptorPool;

  // Of state_: what is above is the number of users.
  static constexpr std::uint32_t kOpen = 1;
  static constexpr std::uint32_t kUsedRecently = 2;
  static constexpr std::uint32_t kOneUser = 4;

  std::atomic<std::uint32_t> state_{0};
  int fd_ = -1;             // of a user, and while kOpen is set, it does not change
  std::uint32_t slot_ = 0;  // in the pool, which guards it
};

// Closes the descriptor of the pool that was used least recently and is not in use. False where
// there is none.
bool close_idle_descriptor();

// Whether `fault`, an errno, says that the process or the system has no descriptor left.
inline bool is_want_of_descriptors(int fault) { return fault == EMFILE || fault == ENFILE; }

// Calls `open`, which returns a descriptor, or a number below 0 and errno. While no
// descriptor is left, closes idle ones and calls it again.
template <typename Open>
int open_descriptor(const Open& open) {
  int fd = open();
  while (fd < 0 && is_want_of_descriptors(errno)) {
    const int fault = errno;
    if (!close_idle_descriptor()) {
      errno = fault;
      break;
    }
    fd = open();
  }
  return fd;
}

}  // namespace npyfs
