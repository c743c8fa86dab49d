// SPDX-License-Identifier: Apache-2.0

#include "tests/support/faulty_pread.h"

#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>

namespace npyfs::testing {

namespace {

std::atomic<Fault> current{Fault::kNone};
std::atomic<std::uint32_t> state{1};
std::atomic<std::uint64_t> disturbed{0};

std::uint32_t next_random() {
  // A linear congruence is enough to spread faults; threads may share it.
  std::uint32_t before = state.load();
  while (!state.compare_exchange_weak(before, before * 1664525 + 1013904223)) {
  }
  return before >> 16;
}

}  // namespace

void set_fault(Fault fault, std::uint32_t seed) {
  state = seed;
  disturbed = 0;
  current = fault;
}

std::uint64_t disturbed_calls() { return disturbed; }

}  // namespace npyfs::testing

namespace {

using namespace npyfs::testing;  // NOLINT(google-build-using-namespace): two functions of libc

// What becomes of a call that would read `nbytes`: an error, or fewer bytes.
int disturb(size_t& nbytes) {
  switch (current.load()) {
    case Fault::kNone:
      break;
    case Fault::kShort:
      if (next_random() % 4 == 0) {
        ++disturbed;
        return EINTR;
      }
      if (nbytes > 1 && next_random() % 2 == 0) {
        ++disturbed;
        nbytes = 1 + next_random() % (nbytes - 1);
      }
      break;
    case Fault::kIoError:
      if (next_random() % 4 == 0) {
        ++disturbed;
        return EIO;
      }
      break;
  }
  return 0;
}

}  // namespace

extern "C" ssize_t pread64(int fd, void* out, size_t nbytes, off_t offset) {
  if (const int error = disturb(nbytes)) {
    errno = error;
    return -1;
  }
  return syscall(SYS_pread64, fd, out, nbytes, offset);
}

extern "C" ssize_t preadv64(int fd, const iovec* parts, int count, off_t offset) {
  size_t nbytes = 0;
  for (int i = 0; i < count; ++i) {
    nbytes += parts[i].iov_len;
  }
  const size_t all = nbytes;
  if (const int error = disturb(nbytes)) {
    errno = error;
    return -1;
  }
  // Short: what the first part takes.
  return nbytes < all ? syscall(SYS_pread64, fd, parts[0].iov_base,
                                std::min(nbytes, parts[0].iov_len), offset)
                      : syscall(SYS_preadv, fd, parts, count, offset, 0L);
}
