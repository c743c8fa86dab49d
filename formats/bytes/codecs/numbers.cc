// SPDX-License-Identifier: Apache-2.0

#include "formats/bytes/codecs/numbers.h"

namespace npyfs {

float to_float(Half half) {
  const std::uint32_t sign = static_cast<std::uint32_t>(half.bits & 0x8000U) << 16;
  const std::uint32_t exponent = (half.bits >> 10) & 0x1fU;
  const std::uint32_t fraction = half.bits & 0x3ffU;
  if (exponent == 0x1f) {
    return std::bit_cast<float>(sign | 0x7f800000U | fraction << 13);
  }
  if (exponent == 0) {
    const float magnitude = static_cast<float>(fraction) * 0x1p-24F;
    return sign != 0 ? -magnitude : magnitude;
  }
  return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
}

Half to_half(float number) {
  const auto bits = std::bit_cast<std::uint32_t>(number);
  const auto sign = static_cast<std::uint16_t>(bits >> 16 & 0x8000U);
  const std::uint32_t magnitude = bits & 0x7fffffffU;
  if (magnitude > 0x7f800000U) {
    // A NaN stays one even where the bits that say so are cut off.
    const std::uint32_t payload = magnitude >> 13 & 0x3ffU;
    return {static_cast<std::uint16_t>(sign | 0x7c00U | (payload != 0 ? payload : 1U))};
  }
  if (magnitude >= 0x477ff000U) {  // rounds to more than 65504
    return {static_cast<std::uint16_t>(sign | 0x7c00U)};
  }
  if (magnitude < 0x38800000U) {  // below the smallest normal half: a multiple of 2^-24
    const auto multiple = static_cast<std::uint16_t>(std::nearbyint(std::abs(number) * 0x1p24F));
    return {static_cast<std::uint16_t>(sign | multiple)};
  }
  const std::uint32_t rounded = magnitude + 0xfffU + (magnitude >> 13 & 1U);
  return {static_cast<std::uint16_t>(sign | ((rounded - 0x38000000U) >> 13))};
}

std::optional<NumberType> number_type(const DType& dtype) {
  const bool is_float = dtype.kind == 'f' && dtype.itemsize >= 2;
  const bool is_integer = dtype.kind == 'i' || dtype.kind == 'u';
  const bool is_bool = dtype.kind == 'b' && dtype.itemsize == 1;
  if (!(is_float || is_integer || is_bool) || dtype.itemsize > 8) {
    return std::nullopt;
  }
  return NumberType{dtype.kind, dtype.itemsize, dtype.text().starts_with('>')};
}

void cast_numbers(const NumberType& from, const std::byte* in, const NumberType& to, std::byte* out,
                  std::size_t count) {
  with_number(from, [&]<typename From>(From) {
    with_number(to, [&]<typename To>(To) {
      for (std::size_t i = 0; i < count; ++i) {
        const auto number = load_number<From>(in + i * sizeof(From), from.big_endian);
        store_number<To>(convert_number<Computed<To>>(number), out + i * sizeof(To), to.big_endian);
      }
    });
  });
}

}  // namespace npyfs
