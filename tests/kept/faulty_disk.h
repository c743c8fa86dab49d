// SPDX-License-Identifier: Apache-2.0
//
// Stands in for the C library's calls that read, write, sync and punch files in a test program, so
// that a real disk fails.

#pragma once

#include <cstdint>

namespace npyfs::testing {

// One call in so many fails (0: none), with this errno; writes may also do a part of their work.
struct DiskFaults {
  std::uint32_t reads = 0;
  std::uint32_t writes = 0;
  std::uint32_t syncs = 0;
  std::uint32_t punches = 0;
  int error = 5;  // EIO
};

// For the whole process, from now on; `seed` makes a run repeatable within one thread.
void set_disk_faults(const DiskFaults& faults, std::uint32_t seed = 1);

// How many calls have failed since.
std::uint64_t disk_faults();

}  // namespace npyfs::testing
