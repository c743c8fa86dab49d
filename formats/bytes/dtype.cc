// SPDX-License-Identifier: Apache-2.0

#include "formats/bytes/dtype.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

namespace npyfs {
namespace {

struct Alias {
  std::string_view text;
  std::string_view code;
};

// numpy's names, and its one-letter codes as they stand on 64-bit Linux.
constexpr std::array kNames = std::to_array<Alias>({
    {"bool", "b1"},          {"bool_", "b1"},        {"int8", "i1"},       {"int16", "i2"},
    {"int32", "i4"},         {"int64", "i8"},        {"uint8", "u1"},      {"uint16", "u2"},
    {"uint32", "u4"},        {"uint64", "u8"},       {"float16", "f2"},    {"float32", "f4"},
    {"float64", "f8"},       {"float128", "f16"},    {"complex64", "c8"},  {"complex128", "c16"},
    {"complex256", "c32"},   {"byte", "i1"},         {"ubyte", "u1"},      {"short", "i2"},
    {"ushort", "u2"},        {"intc", "i4"},         {"uintc", "u4"},      {"int", "i8"},
    {"int_", "i8"},          {"uint", "u8"},         {"long", "i8"},       {"ulong", "u8"},
    {"longlong", "i8"},      {"ulonglong", "u8"},    {"intp", "i8"},       {"uintp", "u8"},
    {"half", "f2"},          {"single", "f4"},       {"float", "f8"},      {"float_", "f8"},
    {"double", "f8"},        {"longdouble", "f16"},  {"longfloat", "f16"}, {"csingle", "c8"},
    {"singlecomplex", "c8"}, {"complex", "c16"},     {"complex_", "c16"},  {"cfloat", "c16"},
    {"cdouble", "c16"},      {"clongdouble", "c32"}, {"str", "U0"},        {"str_", "U0"},
    {"unicode", "U0"},       {"unicode_", "U0"},     {"bytes", "S0"},      {"bytes_", "S0"},
    {"string_", "S0"},       {"void", "V0"},
});
constexpr std::array kLetters = std::to_array<Alias>({
    {"?", "b1"}, {"b", "i1"}, {"B", "u1"},  {"h", "i2"}, {"H", "u2"},  {"i", "i4"},  {"I", "u4"},
    {"l", "i8"}, {"L", "u8"}, {"q", "i8"},  {"Q", "u8"}, {"p", "i8"},  {"P", "u8"},  {"e", "f2"},
    {"f", "f4"}, {"d", "f8"}, {"g", "f16"}, {"F", "c8"}, {"D", "c16"}, {"G", "c32"}, {"c", "S1"},
    {"S", "S0"}, {"a", "S0"}, {"U", "U0"},  {"V", "V0"},
});
constexpr std::array kNumbers =
    std::to_array<std::string_view>({"b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2",
                                     "f4", "f8", "f16", "c8", "c16", "c32"});
constexpr std::array kTimeUnits = std::to_array<std::string_view>(
    {"Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "ps", "fs", "as"});

// numpy keeps itemsizes in a C int.
constexpr std::uint32_t kMaxItemsize = std::numeric_limits<std::int32_t>::max();

template <std::size_t N>
std::string_view find_alias(const std::array<Alias, N>& table, std::string_view text) {
  const auto* const found =
      std::find_if(table.begin(), table.end(), [&](const Alias& row) { return row.text == text; });
  return found == table.end() ? std::string_view() : found->code;
}

template <std::size_t N>
bool contains(const std::array<std::string_view, N>& table, std::string_view text) {
  return std::find(table.begin(), table.end(), text) != table.end();
}

std::optional<std::uint32_t> parse_count(std::string_view digits) {
  std::uint32_t count = 0;
  const auto [end, error] = std::from_chars(digits.begin(), digits.end(), count);
  if (digits.empty() || error != std::errc() || end != digits.end() || count > kMaxItemsize) {
    return std::nullopt;
  }
  return count;
}

// 'order' is '<', '>' or '|'.
DType make(char order, char kind, std::string_view rest, std::uint32_t itemsize) {
  return {fmt::format("'{}{}{}'", order, kind, rest), itemsize, kind};
}

// A date or duration; `unit` is what follows its code: "", "[ns]", "[25us]".
std::optional<DType> time_type(char order, char kind, std::string_view unit) {
  if (unit.empty() || unit == "[generic]") {
    return make(order, kind, "8", 8);
  }
  if (unit.size() < 3 || unit.front() != '[' || unit.back() != ']') {
    return std::nullopt;
  }
  unit = unit.substr(1, unit.size() - 2);
  const auto digits = std::min(unit.find_first_not_of("0123456789"), unit.size());
  const auto count = digits == 0 ? 1 : parse_count(unit.substr(0, digits));
  unit.remove_prefix(digits);
  if (!count || !contains(kTimeUnits, unit)) {
    return std::nullopt;
  }
  return make(order, kind,
              *count == 1 ? fmt::format("8[{}]", unit) : fmt::format("8[{}{}]", *count, unit), 8);
}

// S7, U5, V10.
std::optional<DType> sized_type(char order, char kind, std::string_view digits) {
  const std::uint32_t unit_bytes = kind == 'U' ? 4 : 1;
  const auto count = parse_count(digits);
  if (!count || *count > kMaxItemsize / unit_bytes) {
    return std::nullopt;
  }
  return make(kind == 'U' ? order : '|', kind, fmt::format("{}", *count), *count * unit_bytes);
}

// Any code without its byte order.
std::optional<DType> from_code(char order, std::string_view code) {
  if (const auto plain = find_alias(kLetters, code); !plain.empty()) {
    code = plain;
  }
  if (code.empty()) {
    return std::nullopt;
  }
  const char kind = code.front();
  switch (kind) {
    case 'M':
    case 'm':
      if (code.size() == 1) {
        return time_type(order, kind, "");
      }
      return code[1] == '8' ? time_type(order, kind, code.substr(2)) : std::nullopt;
    case 'S':
    case 'U':
    case 'V':
      return sized_type(order, kind, code.substr(1));
    case 'a':
      return sized_type(order, 'S', code.substr(1));
    default:
      if (!contains(kNumbers, code)) {
        return std::nullopt;
      }
      const std::uint32_t itemsize = *parse_count(code.substr(1));
      return make(itemsize == 1 ? '|' : order, kind, code.substr(1), itemsize);
  }
}

}  // namespace

std::optional<std::uint64_t> element_count(const Shape& shape) {
  // As numpy: an axis of length 0 does not excuse the others from fitting.
  std::uint64_t nonzero = 1;
  bool empty = false;
  for (const std::uint64_t dim : shape) {
    empty = empty || dim == 0;
    if (dim != 0 && (__builtin_mul_overflow(nonzero, dim, &nonzero) || nonzero >> 63 != 0)) {
      return std::nullopt;
    }
  }
  return empty ? 0 : nonzero;
}

std::uint64_t row_elements(const Shape& shape) {
  std::uint64_t count = 1;
  for (std::size_t axis = 1; axis < shape.size(); ++axis) {
    count *= shape[axis];
  }
  return count;
}

std::string shape_text(const Shape& shape) {
  return shape.size() == 1 ? fmt::format("({},)", shape[0])
                           : fmt::format("({})", fmt::join(shape, ", "));
}

DType DType::simple(std::string_view code) { return from_user(code).value(); }

std::optional<DType> DType::from_user(std::string_view text) {
  if (const auto code = find_alias(kNames, text); !code.empty()) {
    return from_code('<', code);
  }
  for (const auto& [name, kind] : {std::pair("datetime64", 'M'), std::pair("timedelta64", 'm')}) {
    if (text.starts_with(name)) {
      return time_type('<', kind, text.substr(std::string_view(name).size()));
    }
  }
  char order = '<';
  if (!text.empty() && std::string_view("<>=|").find(text.front()) != std::string_view::npos) {
    order = text.front() == '>' ? '>' : '<';
    text.remove_prefix(1);
  }
  return from_code(order, text);
}

std::string DType::text() const {
  return descr.starts_with('\'') ? descr.substr(1, descr.size() - 2) : descr;
}

}  // namespace npyfs
