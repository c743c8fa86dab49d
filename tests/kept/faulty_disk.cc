// SPDX-License-Identifier: Apache-2.0

#include "tests/kept/faulty_disk.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

namespace npyfs::testing {

namespace {

std::atomic<std::uint32_t> reads{0};
std::atomic<std::uint32_t> writes{0};
std::atomic<std::uint32_t> syncs{0};
std::atomic<std::uint32_t> punches{0};
std::atomic<int> error{EIO};
std::atomic<std::uint32_t> state{1};
std::atomic<std::uint64_t> failed{0};

std::uint32_t next_random() {
  std::uint32_t before = state.load();
  while (!state.compare_exchange_weak(before, before * 1664525 + 1013904223)) {
  }
  return before >> 16;
}

bool fails(const std::atomic<std::uint32_t>& one_in) {
  const std::uint32_t n = one_in.load();
  if (n == 0 || next_random() % n != 0) {
    return false;
  }
  ++failed;
  errno = error.load();
  return true;
}

}  // namespace

void set_disk_faults(const DiskFaults& faults, std::uint32_t seed) {
  reads = faults.reads;
  writes = faults.writes;
  syncs = faults.syncs;
  punches = faults.punches;
  error = faults.error;
  state = seed;
  failed = 0;
}

std::uint64_t disk_faults() { return failed; }

}  // namespace npyfs::testing

extern "C" {

ssize_t pread64(int fd, void* out, size_t nbytes, off_t offset) {
  return npyfs::testing::fails(npyfs::testing::reads)
             ? -1
             : syscall(SYS_pread64, fd, out, nbytes, offset);
}

ssize_t pwrite64(int fd, const void* bytes, size_t nbytes, off_t offset) {
  if (npyfs::testing::fails(npyfs::testing::writes)) {
    const int why = errno;
    // Half of it may be there all the same.
    if (npyfs::testing::next_random() % 2 == 0) {
      (void)syscall(SYS_pwrite64, fd, bytes, nbytes / 2, offset);
    }
    errno = why;
    return -1;
  }
  return syscall(SYS_pwrite64, fd, bytes, nbytes, offset);
}

int fdatasync(int fd) {
  return npyfs::testing::fails(npyfs::testing::syncs)
             ? -1
             : static_cast<int>(syscall(SYS_fdatasync, fd));
}

int fsync(int fd) {
  return npyfs::testing::fails(npyfs::testing::syncs) ? -1
                                                      : static_cast<int>(syscall(SYS_fsync, fd));
}

int fallocate64(int fd, int mode, off_t offset, off_t nbytes) {
  return npyfs::testing::fails(npyfs::testing::punches)
             ? -1
             : static_cast<int>(syscall(SYS_fallocate, fd, mode, offset, nbytes));
}

}  // extern "C"
