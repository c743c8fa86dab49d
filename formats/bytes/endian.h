// SPDX-License-Identifier: Apache-2.0
//
// Numbers from unaligned little-endian bytes.

#pragma once

#include <bit>
#include <cstddef>
#include <cstring>

namespace npyfs {

static_assert(std::endian::native == std::endian::little, "sources are read as they lie");

// The T that begins at `bytes`, which need not be aligned.
template <typename T>
T load_le(const std::byte* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

}  // namespace npyfs
