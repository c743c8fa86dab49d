// SPDX-License-Identifier: Apache-2.0
//
// float16, for which C++20 has no type: IEEE 754's binary16, 1 bit of sign, 5 of exponent, 10 of
// fraction. As numpy's halffloat.c has it: NaNs keep their sign and what their fraction begins
// with.

#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>

namespace npyfs {

// What a float or double is made of.
template <typename Float>
struct FloatBits {
  static constexpr bool kSingle = std::is_same_v<Float, float>;
  using Bits = std::conditional_t<kSingle, std::uint32_t, std::uint64_t>;
  // How much longer its fraction is than a half's, and by how much its exponents count from further
  // below.
  static constexpr int kMoreFraction = kSingle ? 13 : 42;
  static constexpr Bits kMoreBias = kSingle ? 127 - 15 : 1023 - 15;
  static constexpr int kSignAbove = kSingle ? 16 : 48;
  static constexpr Bits kSign = Bits{0x8000} << kSignAbove;
  static constexpr Bits kInfinity = kSingle ? 0x7f800000U : 0x7ff0000000000000U;
};

// The value, which every float holds.
template <typename Float>
Float from_half(std::uint16_t half) {
  using Wide = FloatBits<Float>;
  using Bits = typename Wide::Bits;
  const Bits sign = static_cast<Bits>(half & 0x8000U) << Wide::kSignAbove;
  const Bits exponent = half >> 10 & 0x1fU;
  const Bits fraction = half & 0x3ffU;
  if (exponent == 0x1f) {
    return std::bit_cast<Float>(sign | Wide::kInfinity | fraction << Wide::kMoreFraction);
  }
  if (exponent == 0) {
    const Float magnitude = static_cast<Float>(fraction) * static_cast<Float>(0x1p-24);
    return sign != 0 ? -magnitude : magnitude;
  }
  return std::bit_cast<Float>(sign | (exponent + Wide::kMoreBias) << (Wide::kMoreFraction + 10) |
                              fraction << Wide::kMoreFraction);
}

// The nearest half; ties go to the even neighbour, 65520 and more to infinity.
template <typename Float>
std::uint16_t to_half_bits(Float number) {
  using Wide = FloatBits<Float>;
  using Bits = typename Wide::Bits;
  const auto bits = std::bit_cast<Bits>(number);
  const auto sign = static_cast<std::uint16_t>((bits & Wide::kSign) >> Wide::kSignAbove);
  const Bits magnitude = bits & ~Wide::kSign;
  if (magnitude > Wide::kInfinity) {
    // A NaN stays one even where the bits that say so are cut off.
    const auto payload = static_cast<std::uint16_t>(magnitude >> Wide::kMoreFraction & 0x3ffU);
    return static_cast<std::uint16_t>(sign | 0x7c00U | (payload != 0 ? payload : 1U));
  }
  if (magnitude >= std::bit_cast<Bits>(static_cast<Float>(65520))) {
    return static_cast<std::uint16_t>(sign | 0x7c00U);
  }
  if (magnitude < std::bit_cast<Bits>(static_cast<Float>(0x1p-14))) {
    // Below the smallest normal half: a multiple of 2^-24.
    const Float multiple = std::nearbyint(std::abs(number) * static_cast<Float>(0x1p24));
    return static_cast<std::uint16_t>(sign | static_cast<std::uint16_t>(multiple));
  }
  // What rounds up carries into the exponent by itself.
  const Bits half_of_last = (Bits{1} << (Wide::kMoreFraction - 1)) - 1;
  const Bits rounded = magnitude + half_of_last + (magnitude >> Wide::kMoreFraction & 1U);
  return static_cast<std::uint16_t>(
      sign | (rounded - (Wide::kMoreBias << (Wide::kMoreFraction + 10))) >> Wide::kMoreFraction);
}

}  // namespace npyfs
