// SPDX-License-Identifier: Apache-2.0
//
// float16, for which C++20 has no type.

#pragma once

#include <cmath>
#include <cstdint>

namespace npyfs {

// The value of IEEE 754's binary16: 1 bit of sign, 5 of exponent, 10 of fraction.
inline double half_to_double(std::uint16_t bits) {
  const int exponent = bits >> 10 & 0x1f;
  const double fraction = bits & 0x3ff;
  const double value = exponent == 0x1f ? (fraction == 0 ? INFINITY : NAN)
                       : exponent == 0  ? std::ldexp(fraction, -24)
                                        : std::ldexp(fraction + 1024, exponent - 25);
  return (bits & 0x8000) != 0 ? -value : value;
}

// The nearest of them; ties go to the even neighbour, 65520 and more to infinity.
inline std::uint16_t double_to_half(double value) {
  const int sign = std::signbit(value) ? 0x8000 : 0;
  const double magnitude = std::fabs(value);
  if (std::isnan(value)) {
    return 0x7e00;
  }
  if (magnitude >= 65520) {
    return static_cast<std::uint16_t>(sign | 0x7c00);
  }
  if (magnitude < std::ldexp(1.0, -14)) {
    return static_cast<std::uint16_t>(sign | static_cast<int>(std::nearbyint(magnitude * 0x1p24)));
  }
  // A fraction that rounds up to 2048 carries into the exponent by itself.
  const int exponent = std::ilogb(magnitude);
  const int fraction = static_cast<int>(std::nearbyint(std::ldexp(magnitude, 10 - exponent)));
  return static_cast<std::uint16_t>(sign | (((exponent + 15) << 10) + fraction - 1024));
}

}  // namespace npyfs
