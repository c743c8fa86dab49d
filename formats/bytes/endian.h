// SPDX-License-Identifier: Apache-2.0
//
// Numbers from unaligned bytes.

#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
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

// The same where the first byte is the highest.
template <typename T>
T load_be(const std::byte* bytes) {
  if constexpr (sizeof(T) == sizeof(std::uint8_t)) {
    return load_le<T>(bytes);
  } else if constexpr (sizeof(T) == sizeof(std::uint16_t)) {
    return std::bit_cast<T>(__builtin_bswap16(load_le<std::uint16_t>(bytes)));
  } else if constexpr (sizeof(T) == sizeof(std::uint32_t)) {
    return std::bit_cast<T>(__builtin_bswap32(load_le<std::uint32_t>(bytes)));
  } else {
    return std::bit_cast<T>(__builtin_bswap64(load_le<std::uint64_t>(bytes)));
  }
}

template <typename T>
T load(const std::byte* bytes, bool big_endian) {
  return big_endian ? load_be<T>(bytes) : load_le<T>(bytes);
}

}  // namespace npyfs
