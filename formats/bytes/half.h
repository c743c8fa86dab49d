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

}  // namespace npyfs
