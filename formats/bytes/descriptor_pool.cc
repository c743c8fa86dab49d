// SPDX-License-Identifier: Apache-2.0
//
// The clock algorithm: a hand goes round the open descriptors. It passes over those that were used
// since it last came by, and closes the next one. That is nearly the least recently used one, and
// who uses a descriptor has nothing to keep in order.

#include "formats/bytes/descriptor_pool.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <utility>
#include <vector>

namespace npyfs {

std::size_t most_pooled_descriptors() {
  constexpr std::size_t kMost = 100'000;
  constexpr rlim_t kOthers = 32;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) {
    return 100;
  }
  const rlim_t others = std::max(limit.rlim_cur / 4, std::min(kOthers, limit.rlim_cur));
  return std::min<rlim_t>(limit.rlim_cur - others, kMost);
}

class DescriptorPool {
 public:
  // Has `added` open with one more user, by `fd` or by what another thread has opened meanwhile.
  void add(PooledDescriptor& added, int fd) {
    // Two, so that the pool shrinks again after all were in use, or when the limit was lowered.
    std::array<int, 2> closed{-1, -1};
    {
      const std::lock_guard lock(mutex_);
      const bool was_open = is_open(added);
      if (was_open) {
        closed[0] = fd;
      } else {
        insert(added, fd);
      }
      // Before others are closed, of which it must not be one.
      added.state_.fetch_add(PooledDescriptor::kOneUser, std::memory_order_relaxed);
      const std::size_t most = most_pooled_descriptors();
      for (std::size_t i = was_open ? closed.size() : 0; i < closed.size() && open_.size() > most;
           ++i) {
        closed[i] = close_idle();
      }
    }
    for (const int idle : closed) {
      if (idle >= 0) {
        ::close(idle);
      }
    }
  }

  // Closes it, if it is open. Nobody uses it.
  void remove(PooledDescriptor& removed) {
    int fd = -1;
    {
      const std::lock_guard lock(mutex_);
      fd = is_open(removed) ? take_out(removed) : -1;
    }
    if (fd >= 0) {
      ::close(fd);
    }
  }

  // False: all are in use.
  bool close_one() {
    int fd = -1;
    {
      const std::lock_guard lock(mutex_);
      fd = close_idle();
    }
    if (fd >= 0) {
      ::close(fd);
    }
    return fd >= 0;
  }

 private:
  static bool is_open(const PooledDescriptor& descriptor) {
    return (descriptor.state_.load(std::memory_order_relaxed) & PooledDescriptor::kOpen) != 0;
  }

  // Counts as closed from now on, unless somebody uses it or has done so since the last call:
  // whether it does.
  static bool give_up(PooledDescriptor& candidate) {
    std::uint32_t state =
        candidate.state_.fetch_and(~PooledDescriptor::kUsedRecently, std::memory_order_relaxed);
    return state == PooledDescriptor::kOpen &&
           candidate.state_.compare_exchange_strong(state, 0, std::memory_order_acquire);
  }

  void insert(PooledDescriptor& added, int fd) {
    added.slot_ = static_cast<std::uint32_t>(open_.size());
    open_.push_back(&added);
    added.fd_ = fd;
    added.state_.fetch_or(PooledDescriptor::kOpen | PooledDescriptor::kUsedRecently,
                          std::memory_order_release);
  }

  // What the caller is to close; -1: all are in use.
  int close_idle() {
    // In the first round all may turn out to have been used recently.
    for (std::size_t left = 2 * open_.size(); left > 0; --left) {
      hand_ = hand_ < open_.size() ? hand_ : 0;
      if (give_up(*open_[hand_])) {
        return take_out(*open_[hand_]);
      }
      ++hand_;
    }
    return -1;
  }

  int take_out(PooledDescriptor& closed) {
    open_[closed.slot_] = open_.back();
    open_[closed.slot_]->slot_ = closed.slot_;
    open_.pop_back();
    return std::exchange(closed.fd_, -1);
  }

  std::mutex mutex_;  // guards what follows, slot_ of those in it, and fd_ while it changes
  std::vector<PooledDescriptor*> open_;
  std::size_t hand_ = 0;  // where the search for an idle one goes on
};

namespace {

DescriptorPool& pool() {
  // Never destroyed: sources may end later than statics.
  static DescriptorPool* const all = new DescriptorPool;
  return *all;
}

}  // namespace

PooledDescriptor::~PooledDescriptor() { pool().remove(*this); }

int PooledDescriptor::acquire() {
  const std::uint32_t state = state_.fetch_add(kOneUser, std::memory_order_acquire);
  if ((state & kOpen) == 0) {
    release();
    return -1;
  }
  // Seldom written, so that it costs readers of the same file nothing.
  if ((state & kUsedRecently) == 0) {
    state_.fetch_or(kUsedRecently, std::memory_order_relaxed);
  }
  return fd_;
}

int PooledDescriptor::keep_and_acquire(int fd) {
  pool().add(*this, fd);
  return fd_;
}

bool close_idle_descriptor() { return pool().close_one(); }

}  // namespace npyfs
