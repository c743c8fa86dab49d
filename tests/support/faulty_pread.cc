// SPDX-License-Identifier: Apache-2.0

#include "tests/support/faulty_pread.h"

#include <sys/syscall.h>
#include <unistd.h>

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

extern "C" ssize_t pread64(int fd, void* out, size_t nbytes, off_t offset) {
  using namespace npyfs::testing;  // NOLINT(google-build-using-namespace): one function
  const auto answer = [](int error) {
    ++disturbed;
    errno = error;
    return ssize_t{-1};
  };
  switch (current.load()) {
    case Fault::kNone:
      break;
    case Fault::kShort:
      if (next_random() % 4 == 0) {
        return answer(EINTR);
      }
      if (nbytes > 1 && next_random() % 2 == 0) {
        ++disturbed;
        nbytes = 1 + next_random() % (nbytes - 1);
      }
      break;
    case Fault::kIoError:
      if (next_random() % 4 == 0) {
        return answer(EIO);
      }
      break;
  }
  return syscall(SYS_pread64, fd, out, nbytes, offset);
}
