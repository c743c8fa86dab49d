// SPDX-License-Identifier: Apache-2.0

#include "formats/arrays/pad_value.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

#include "formats/bytes/error.h"
#include "formats/bytes/half.h"

namespace npyfs {

namespace {

template <typename T>
std::vector<std::byte> element_bytes(T value) {
  std::vector<std::byte> bytes(sizeof value);
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

std::vector<std::byte> half_element(double value) {
  const std::uint16_t bits = to_half_bits(value);
  const bool overflows = (bits & 0x7fff) == 0x7c00 && std::isfinite(value);
  return overflows ? std::vector<std::byte>() : element_bytes(bits);
}

// Where a finite value becomes infinite, the type does not hold it.
template <typename T>
std::vector<std::byte> float_element(double value) {
  const T narrow = static_cast<T>(value);
  if (std::isinf(static_cast<double>(narrow)) && std::isfinite(value)) {
    return {};
  }
  return element_bytes(narrow);
}

// x86's 80 bits, and zeroes behind them.
std::vector<std::byte> long_double_element(double value) {
  const long double wide = value;
  std::vector<std::byte> bytes(16);
  std::memcpy(bytes.data(), &wide, 10);
  return bytes;
}

// All of `text`, which may have a plus, as C's numbers may.
template <typename T>
std::optional<T> parse_whole(std::string_view text) {
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') {
    text.remove_prefix(1);
  }
  T number{};
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size()) {
    return std::nullopt;
  }
  return number;
}

// `text` as the low 64 bits and the sign of a whole number; also where it is written as a float.
struct Whole {
  std::uint64_t bits = 0;
  bool negative = false;
};
std::optional<Whole> parse_integer(const std::string& text) {
  if (const auto number = parse_whole<std::int64_t>(text)) {
    return Whole{static_cast<std::uint64_t>(*number), *number < 0};
  }
  if (const auto number = parse_whole<std::uint64_t>(text)) {
    return Whole{*number, false};
  }
  // Digits alone were too many for 64 bits, and a double would round them.
  const bool has_point = text.find_first_of(".eE") != std::string::npos;
  const auto value = has_point ? parse_whole<double>(text) : std::nullopt;
  if (!value || *value != std::floor(*value) || *value < -0x1p63 || *value >= 0x1p64) {
    return std::nullopt;
  }
  return *value < 0 ? Whole{static_cast<std::uint64_t>(static_cast<std::int64_t>(*value)), true}
                    : Whole{static_cast<std::uint64_t>(*value), false};
}

std::vector<std::byte> integer_element(const std::string& text, const DType& dtype) {
  const auto whole = parse_integer(text);
  if (!whole || (whole->negative && dtype.kind != 'i')) {
    return {};
  }
  const unsigned value_bits = dtype.kind == 'b' ? 1 : dtype.itemsize * 8 - (dtype.kind == 'i');
  const std::uint64_t most = ~std::uint64_t{0} >> (64 - value_bits);
  // A negative number is -1 - n: its bits are those of n, inverted.
  if ((whole->negative ? ~whole->bits : whole->bits) > most) {
    return {};
  }
  std::vector<std::byte> bytes = element_bytes(whole->bits);
  bytes.resize(dtype.itemsize);
  return bytes;
}

}  // namespace

std::vector<std::byte> pad_element(const std::string& text, const DType& dtype,
                                   const std::string& name) {
  std::vector<std::byte> bytes;
  if (dtype.kind == 'i' || dtype.kind == 'u' || dtype.kind == 'b') {
    bytes = integer_element(text, dtype);
  } else if (const auto value = parse_whole<double>(text)) {
    if (dtype.kind == 'f') {
      bytes = dtype.itemsize == 2   ? half_element(*value)
              : dtype.itemsize == 4 ? float_element<float>(*value)
              : dtype.itemsize == 8 ? element_bytes(*value)
                                    : long_double_element(*value);
    } else if (*value == 0) {
      bytes.resize(dtype.itemsize);
    }
  }
  if (bytes.size() != dtype.itemsize) {
    throw Error(ErrorKind::kUsage, fmt::format("--pad-value {}: {} is {}, which does not hold it",
                                               text, name, dtype.text()));
  }
  if (dtype.text().front() == '>') {
    std::reverse(bytes.begin(), bytes.end());
  }
  return bytes;
}

}  // namespace npyfs
