// SPDX-License-Identifier: Apache-2.0

#include "formats/zarr/fill_value.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <span>

#include "formats/bytes/base64.h"
#include "formats/bytes/codecs/numbers.h"
#include "formats/bytes/error.h"
#include "formats/bytes/utf8.h"
#include "formats/bytes/value_access.h"

namespace npyfs {

namespace {

using Out = std::span<std::byte>;

// Each writes a value of its kind; false where it is none.

bool write_bits(std::uint64_t bits, bool big_endian, Out out) {
  if (out.size() < 8 && bits >> 8 * out.size() != 0) {
    return false;
  }
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[big_endian ? out.size() - 1 - i : i] = static_cast<std::byte>(bits >> 8 * i);
  }
  return true;
}

bool write_bool(const Value& value, Out out) {
  const auto number = as_double(&value);
  const auto truth = as_bool(&value);
  if (!truth && (!number || (*number != 0 && *number != 1))) {
    return false;
  }
  out[0] = static_cast<std::byte>(truth.value_or(number.value_or(0) != 0) ? 1 : 0);
  return true;
}

// Whole floats are integers too: some writers know no others.
std::optional<std::int64_t> whole_number(const Value& value) {
  if (const auto number = as_int64(&value)) {
    return number;
  }
  const auto* real = std::get_if<double>(&value.v);
  if (real != nullptr && std::trunc(*real) == *real && std::abs(*real) < 0x1p53) {
    return static_cast<std::int64_t>(*real);
  }
  return std::nullopt;
}

bool write_integer(const Value& value, bool is_signed, bool big_endian, Out out) {
  const auto number = whole_number(value);
  if (!is_signed) {
    const auto large =
        number && *number >= 0 ? static_cast<std::uint64_t>(*number) : as_uint64(&value);
    return large && write_bits(*large, big_endian, out);
  }
  if (!number) {
    return false;
  }
  const int unused = 64 - static_cast<int>(8 * out.size());
  const auto bits = static_cast<std::uint64_t>(*number) << unused;
  return static_cast<std::int64_t>(bits) >> unused == *number &&
         write_bits(bits >> unused, big_endian, out);
}

bool write_float_text(const std::string& text, bool big_endian, Out out);

bool write_float(const Value& value, bool big_endian, Out out) {
  if (const std::string* text = as_text(&value)) {
    return write_float_text(*text, big_endian, out);
  }
  const auto number = as_double(&value);
  // Of the widest floats only zero is known here.
  const bool too_wide = out.size() > sizeof(double);
  if (!number || (too_wide && *number != 0)) {
    return false;
  }
  if (too_wide) {
    std::fill(out.begin(), out.end(), std::byte{0});
    return true;
  }
  const NumberType type{'f', static_cast<std::uint32_t>(out.size()), big_endian};
  with_number(type, [&]<typename T>(T) {
    if constexpr (!std::is_same_v<T, bool> && !std::is_integral_v<T>) {
      store_number<T>(static_cast<Computed<T>>(*number), out.data(), big_endian);
    }
  });
  return true;
}

bool write_float_text(const std::string& text, bool big_endian, Out out) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (text == "NaN") {
    return write_float({std::numeric_limits<double>::quiet_NaN()}, big_endian, out);
  }
  if (text == "Infinity" || text == "-Infinity") {
    return write_float({text[0] == '-' ? -kInfinity : kInfinity}, big_endian, out);
  }
  // The bits, most significant first.
  const std::string digits = text.starts_with("0x") ? text.substr(2) : "";
  if (digits.size() != 2 * out.size() || out.size() > sizeof(std::uint64_t) ||
      digits.find_first_not_of("0123456789abcdefABCDEF") != std::string::npos) {
    return false;
  }
  return write_bits(std::stoull(digits, nullptr, 16), big_endian, out);
}

bool write_complex(const Value& value, bool big_endian, Out out) {
  const Out real = out.first(out.size() / 2);
  const Out imaginary = out.last(out.size() / 2);
  if (const List* parts = as_list(&value)) {
    return parts->size() == 2 && write_float((*parts)[0], big_endian, real) &&
           write_float((*parts)[1], big_endian, imaginary);
  }
  return write_float(value, big_endian, real);
}

bool write_time(const Value& value, bool big_endian, Out out) {
  const std::string* text = as_text(&value);
  if (text != nullptr && *text == "NaT") {
    return write_integer({std::numeric_limits<std::int64_t>::min()}, true, big_endian, out);
  }
  return write_integer(value, true, big_endian, out);
}

bool write_text(const Value& value, bool big_endian, Out out) {
  const std::string* text = as_text(&value);
  if (text == nullptr || utf8_length(*text) > out.size() / 4) {
    return whole_number(value) == 0;  // zarr-python's default before it knew of text
  }
  write_utf32(*text, out);
  for (std::size_t at = 0; big_endian && at < out.size(); at += 4) {
    std::reverse(out.begin() + at, out.begin() + at + 4);
  }
  return true;
}

// `exact`: nothing is padded.
bool write_base64(const Value& value, bool exact, Out out) {
  const std::string* text = as_text(&value);
  if (text == nullptr) {
    return whole_number(value) == 0;
  }
  std::vector<std::byte> bytes(text->size() / 4 * 3);
  const auto nbytes = decode_base64(*text, bytes);
  if (!nbytes || *nbytes > out.size() || (exact && *nbytes != out.size() && !text->empty())) {
    return false;
  }
  std::copy_n(bytes.begin(), *nbytes, out.begin());
  return true;
}

bool write_value(const Value& value, const DType& dtype, Out out) {
  const bool big_endian = dtype.text().starts_with('>');
  switch (dtype.kind) {
    case 'b':
      return write_bool(value, out);
    case 'i':
    case 'u':
      return write_integer(value, dtype.kind == 'i', big_endian, out);
    case 'f':
      return write_float(value, big_endian, out);
    case 'c':
      return write_complex(value, big_endian, out);
    case 'M':
    case 'm':
      return write_time(value, big_endian, out);
    case 'U':
      return write_text(value, big_endian, out);
    default:
      return write_base64(value, dtype.kind == 'V', out);
  }
}

}  // namespace

std::vector<std::byte> read_fill_value(const Value& value, const DType& dtype) {
  // Taken before anything shows that there are elements at all; structured ones have arrays in
  // them.
  constexpr std::uint32_t kMostNbytes = std::uint32_t{16} << 20;
  if (dtype.itemsize > kMostNbytes) {
    throw Error(ErrorKind::kTooLarge, fmt::format("an element has {} bytes, expected at most {}",
                                                  dtype.itemsize, kMostNbytes));
  }
  std::vector<std::byte> element(dtype.itemsize);
  if (!is_null(value) && !write_value(value, dtype, element)) {
    throw Error(ErrorKind::kUnsupported, fmt::format("fill_value is {}, expected a value of {}",
                                                     brief_json(value), dtype.text()));
  }
  return element;
}

}  // namespace npyfs
