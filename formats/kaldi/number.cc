// SPDX-License-Identifier: Apache-2.0

#include "formats/kaldi/number.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <string>

namespace npyfs {

namespace {

// inf, infinity and nan in any case, with a minus too, which Kaldi writes and cannot read.
std::optional<double> parse_non_finite(std::string_view word) {
  const bool negative = word.starts_with('-');
  std::string lower(word.substr(negative ? 1 : 0, 9));
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  double value = 0;
  if (lower == "inf" || lower == "infinity") {
    value = std::numeric_limits<double>::infinity();
  } else if (lower == "nan") {
    value = std::numeric_limits<double>::quiet_NaN();
  } else {
    return std::nullopt;
  }
  return negative ? -value : value;
}

// Correctly rounded to T; nothing where the value is too large for it or the word is no number.
template <typename T>
std::optional<double> parse_finite(std::string_view word) {
  T value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (end != word.data() + word.size() || error == std::errc::invalid_argument) {
    return std::nullopt;
  }
  if (error == std::errc::result_out_of_range) {
    // Too small is no fault, and rounds to zero or a denormal.
    const std::string copy(word);
    value = sizeof(T) == 4 ? static_cast<T>(std::strtof(copy.c_str(), nullptr))
                           : static_cast<T>(std::strtod(copy.c_str(), nullptr));
  }
  return std::isinf(value) ? std::nullopt : std::optional<double>(value);
}

}  // namespace

std::optional<std::int32_t> parse_int32(std::string_view word) {
  if (word.starts_with('+')) {
    word.remove_prefix(1);
    if (word.starts_with('-')) {
      return std::nullopt;
    }
  }
  std::int32_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  return error == std::errc() && end == word.data() + word.size() ? std::optional(value)
                                                                  : std::nullopt;
}

std::optional<double> parse_number(std::string_view word, bool as_double) {
  if (word.empty()) {
    return std::nullopt;
  }
  const char first = word[word[0] == '-' && word.size() > 1 ? 1 : 0];
  const bool fraction = word.size() > 2 && word.starts_with("-.");  // Kaldi looks at one character
  if ((first >= '0' && first <= '9') || fraction) {
    return as_double ? parse_finite<double>(word) : parse_finite<float>(word);
  }
  return parse_non_finite(word);
}

Error not_a_number(const MakeFault& fault, std::string_view word) {
  return fault(
      fmt::format("'{}' stands for a number, expected one that begins with a digit or '-' "
                  "and is in range",
                  printable(word.substr(0, 40))));
}

}  // namespace npyfs
