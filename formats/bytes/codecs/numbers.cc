// SPDX-License-Identifier: Apache-2.0

#include "formats/bytes/codecs/numbers.h"

#include "formats/bytes/half.h"

namespace npyfs {

float to_float(Half half) { return from_half<float>(half.bits); }

Half to_half(float number) { return {to_half_bits(number)}; }

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
