// SPDX-License-Identifier: Apache-2.0
//
// Words for places in byte strings, and arithmetic that does not trust its inputs.

#pragma once

#include <cstdint>
#include <optional>

namespace npyfs {

// [begin, end) in bytes from the start of whatever it is a range of.
struct ByteRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;

  std::uint64_t nbytes() const { return end - begin; }
  bool empty() const { return begin >= end; }
};

// a + b, or nothing where that exceeds 64 bits.
inline std::optional<std::uint64_t> checked_add(std::uint64_t a, std::uint64_t b) {
  std::uint64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) {
    return std::nullopt;
  }
  return sum;
}

// a * b, or nothing where that exceeds 64 bits.
inline std::optional<std::uint64_t> checked_mul(std::uint64_t a, std::uint64_t b) {
  std::uint64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) {
    return std::nullopt;
  }
  return product;
}

// Whether [offset, offset + nbytes) lies in a source of `source_nbytes`.
inline bool lies_within(std::uint64_t offset, std::uint64_t nbytes, std::uint64_t source_nbytes) {
  return offset <= source_nbytes && nbytes <= source_nbytes - offset;
}

}  // namespace npyfs
