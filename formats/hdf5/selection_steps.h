// SPDX-License-Identifier: Apache-2.0
//
// The elements along an axis that a selection of a virtual array takes, by their number k in it.

#pragma once

#include <algorithm>
#include <cstdint>

#include "formats/hdf5/description.h"

namespace npyfs {

using Steps = VirtualStorage::Steps;

// How many.
inline std::uint64_t taken(const Steps& steps) { return steps.count * steps.block; }

// Where element k is.
inline std::uint64_t coordinate(const Steps& steps, std::uint64_t k) {
  return steps.start + k / steps.block * steps.stride + k % steps.block;
}

// How many lie before `end`.
inline std::uint64_t taken_before(const Steps& steps, std::uint64_t end) {
  if (end <= steps.start || taken(steps) == 0) {
    return 0;
  }
  const std::uint64_t into = end - steps.start;
  const std::uint64_t whole = into / steps.stride;
  if (whole >= steps.count) {
    return taken(steps);
  }
  return whole * steps.block + std::min(into % steps.stride, steps.block);
}

}  // namespace npyfs
