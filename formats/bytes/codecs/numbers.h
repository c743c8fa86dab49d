// SPDX-License-Identifier: Apache-2.0
//
// Numbers of any of numpy's plain types in either byte order, for the filters that calculate.

#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <type_traits>

#include "formats/bytes/dtype.h"

namespace npyfs {

// IEEE 754 binary16; calculated with as float.
struct Half {
  std::uint16_t bits;
};
float to_float(Half half);
// Rounds to nearest, ties to even.
Half to_half(float number);

struct NumberType {
  char kind = 'u';  // b i u f
  std::uint32_t nbytes = 1;
  bool big_endian = false;
};

// Nothing for what is no boolean, integer or float of at most 8 bytes.
std::optional<NumberType> number_type(const DType& dtype);

// Converts `count` numbers as numpy's astype does.
void cast_numbers(const NumberType& from, const std::byte* in, const NumberType& to, std::byte* out,
                  std::size_t count);

// Calls `visit` with a value of the C++ type that `type` is; a boolean is a bool.
template <typename Visit>
auto with_number(const NumberType& type, Visit visit) {
  switch (type.kind) {
    case 'b':
      return visit(bool{});
    case 'i':
      switch (type.nbytes) {
        case 1:
          return visit(std::int8_t{});
        case 2:
          return visit(std::int16_t{});
        case 4:
          return visit(std::int32_t{});
        default:
          return visit(std::int64_t{});
      }
    case 'u':
      switch (type.nbytes) {
        case 1:
          return visit(std::uint8_t{});
        case 2:
          return visit(std::uint16_t{});
        case 4:
          return visit(std::uint32_t{});
        default:
          return visit(std::uint64_t{});
      }
    default:
      switch (type.nbytes) {
        case 2:
          return visit(Half{});
        case 4:
          return visit(float{});
        default:
          return visit(double{});
      }
  }
}

// What a T is calculated with.
template <typename T>
using Computed = std::conditional_t<std::is_same_v<T, Half>, float, T>;

template <typename T>
Computed<T> load_number(const std::byte* from, bool big_endian) {
  if constexpr (std::is_same_v<T, bool>) {
    return *from != std::byte{0};
  } else {
    std::byte bytes[sizeof(T)];
    for (std::size_t i = 0; i < sizeof(T); ++i) {
      bytes[i] = from[big_endian ? sizeof(T) - 1 - i : i];
    }
    const T number = std::bit_cast<T>(bytes);
    if constexpr (std::is_same_v<T, Half>) {
      return to_float(number);
    } else {
      return number;
    }
  }
}

template <typename T>
void store_number(Computed<T> number, std::byte* to, bool big_endian) {
  std::byte bytes[sizeof(T)];
  if constexpr (std::is_same_v<T, Half>) {
    const Half half = to_half(number);
    std::memcpy(bytes, &half, sizeof half);
  } else {
    std::memcpy(bytes, &number, sizeof number);
  }
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    to[i] = bytes[big_endian ? sizeof(T) - 1 - i : i];
  }
}

// As C casts where C defines it; floats that the integer cannot hold as x86 converts them.
template <typename To, typename From>
To convert_number(From number) {
  if constexpr (std::is_same_v<To, bool>) {
    return number != From{};
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    constexpr double kLimit = 9223372036854775808.0;
    const auto wide = static_cast<double>(number);
    if (std::is_same_v<To, std::uint64_t> && wide >= kLimit && wide < 2 * kLimit) {
      return static_cast<To>(static_cast<std::uint64_t>(wide));
    }
    const std::int64_t whole = wide >= -kLimit && wide < kLimit
                                   ? static_cast<std::int64_t>(wide)
                                   : std::numeric_limits<std::int64_t>::min();
    return static_cast<To>(whole);
  } else {
    return static_cast<To>(number);
  }
}

}  // namespace npyfs
