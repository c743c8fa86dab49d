// SPDX-License-Identifier: Apache-2.0
//
// Counts, in a test program, how often a thread has begun to wait for a condition variable, so that
// a test knows when all others wait without any timing.

#pragma once

#include <cstdint>

namespace npyfs::testing {

// Since the program began. Whoever is counted waits, or is about to with the mutex still held.
std::uint64_t waits_begun();

}  // namespace npyfs::testing
