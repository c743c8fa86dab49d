// SPDX-License-Identifier: Apache-2.0
//
// Stands in for the C library's pread in a test program, so that real files fail as disks do.

#pragma once

#include <cstdint>

namespace npyfs::testing {

enum class Fault {
  kNone,
  kShort,    // at random fewer bytes than asked for, at random EINTR
  kIoError,  // at random EIO
};

// For the whole process, from now on; `seed` makes a run repeatable within one thread.
void set_fault(Fault fault, std::uint32_t seed);

// How many calls have been disturbed since set_fault.
std::uint64_t disturbed_calls();

}  // namespace npyfs::testing
