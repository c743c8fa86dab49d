// SPDX-License-Identifier: Apache-2.0

#include "formats/das/sample_types.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "formats/bytes/endian.h"
#include "formats/bytes/half.h"

namespace npyfs {

namespace {

bool is_integer(const DType& type) { return type.kind == 'i' || type.kind == 'u'; }

bool is_number(const DType& type) {
  return (is_integer(type) && type.itemsize <= 8) ||
         (type.kind == 'f' && type.itemsize >= 2 && type.itemsize <= 8);
}

bool is_big_endian(const DType& type) { return type.text().starts_with('>'); }

DType type_of(char kind, std::uint32_t itemsize) {
  return DType::simple(fmt::format("{}{}{}", itemsize == 1 ? '|' : '<', kind, itemsize));
}

// The least float that holds all integers of the type, or, beyond 32 bits, float64.
std::uint32_t float_nbytes_for(const DType& type) {
  return type.kind == 'f' ? type.itemsize : std::min<std::uint32_t>(2 * type.itemsize, 8);
}

DType promoted_integers(const DType& a, const DType& b) {
  if (a.kind == b.kind) {
    return type_of(a.kind, std::max(a.itemsize, b.itemsize));
  }
  const DType& is_signed = a.kind == 'i' ? a : b;
  const DType& is_unsigned = a.kind == 'i' ? b : a;
  if (is_signed.itemsize > is_unsigned.itemsize) {
    return type_of('i', is_signed.itemsize);
  }
  return is_unsigned.itemsize < 8 ? type_of('i', 2 * is_unsigned.itemsize) : type_of('f', 8);
}

// Calls `use` with the number at `at`, in a type that holds it exactly.
template <typename Use>
void with_number(const DType& type, const std::byte* at, bool swap, const Use& use) {
  const bool is_signed = type.kind == 'i';
  if (type.kind == 'f') {
    switch (type.itemsize) {
      case 2:
        return use(from_half<double>(load<std::uint16_t>(at, swap)));
      case 4:
        return use(load<float>(at, swap));
      default:
        return use(load<double>(at, swap));
    }
  }
  switch (type.itemsize) {
    case 1:
      return is_signed ? use(load<std::int8_t>(at, swap)) : use(load<std::uint8_t>(at, swap));
    case 2:
      return is_signed ? use(load<std::int16_t>(at, swap)) : use(load<std::uint16_t>(at, swap));
    case 4:
      return is_signed ? use(load<std::int32_t>(at, swap)) : use(load<std::uint32_t>(at, swap));
    default:
      return is_signed ? use(load<std::int64_t>(at, swap)) : use(load<std::uint64_t>(at, swap));
  }
}

template <typename To>
void convert_to(const DType& from, std::span<const std::byte> in, std::span<std::byte> out) {
  const bool swap = is_big_endian(from);
  const std::byte* at = in.data();
  for (std::byte* to = out.data(); to < out.data() + out.size(); to += sizeof(To)) {
    with_number(from, at, swap, [&](auto number) {
      const To converted = static_cast<To>(number);
      std::memcpy(to, &converted, sizeof converted);
    });
    at += from.itemsize;
  }
}

// A float16 is only swapped; an int8 or uint8 is one exactly.
void convert_to_half(const DType& from, std::span<const std::byte> in, std::span<std::byte> out) {
  const bool swap = is_big_endian(from);
  for (std::size_t i = 0; i < out.size() / 2; ++i) {
    const std::byte* at = in.data() + i * from.itemsize;
    std::uint16_t bits = 0;
    if (from.kind == 'f') {
      bits = load<std::uint16_t>(at, swap);
    } else {
      with_number(from, at, swap,
                  [&](auto number) { bits = to_half_bits(static_cast<double>(number)); });
    }
    std::memcpy(out.data() + 2 * i, &bits, sizeof bits);
  }
}

}  // namespace

std::optional<DType> promoted_type(const DType& a, const DType& b) {
  if (a == b) {
    return a;
  }
  if (!is_number(a) || !is_number(b)) {
    return std::nullopt;
  }
  if (is_integer(a) && is_integer(b)) {
    return promoted_integers(a, b);
  }
  return type_of('f', std::max(float_nbytes_for(a), float_nbytes_for(b)));
}

void convert_samples(const DType& from, std::span<const std::byte> in, const DType& to,
                     std::span<std::byte> out) {
  if (from == to) {
    std::copy(in.begin(), in.end(), out.begin());
    return;
  }
  const bool is_signed = to.kind == 'i';
  switch (to.itemsize) {
    case 1:
      return is_signed ? convert_to<std::int8_t>(from, in, out)
                       : convert_to<std::uint8_t>(from, in, out);
    case 2:
      return to.kind == 'f' ? convert_to_half(from, in, out)
             : is_signed    ? convert_to<std::int16_t>(from, in, out)
                            : convert_to<std::uint16_t>(from, in, out);
    case 4:
      return to.kind == 'f' ? convert_to<float>(from, in, out)
             : is_signed    ? convert_to<std::int32_t>(from, in, out)
                            : convert_to<std::uint32_t>(from, in, out);
    default:
      return to.kind == 'f' ? convert_to<double>(from, in, out)
             : is_signed    ? convert_to<std::int64_t>(from, in, out)
                            : convert_to<std::uint64_t>(from, in, out);
  }
}

}  // namespace npyfs
