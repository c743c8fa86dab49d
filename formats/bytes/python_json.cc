// SPDX-License-Identifier: Apache-2.0

#include "formats/bytes/python_json.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <optional>

#include "formats/bytes/utf8.h"

namespace npyfs {

namespace {

// RapidJSON counts what it reads in doubles, of which 308 is the largest exponent.
constexpr std::size_t kMostDigits = 300;

std::size_t count_digits(std::string_view text, std::size_t at) {
  const std::size_t end = text.find_first_not_of("0123456789", at);
  return (end == std::string_view::npos ? text.size() : end) - at;
}

// Whether `token` is what the grammar of JSON calls a number.
bool is_number(std::string_view token) {
  std::size_t at = token.starts_with('-') ? 1 : 0;
  const std::size_t whole = count_digits(token, at);
  if (whole == 0 || (whole > 1 && token[at] == '0')) {
    return false;
  }
  at += whole;
  if (at < token.size() && token[at] == '.') {
    const std::size_t digits = count_digits(token, at + 1);
    if (digits == 0) {
      return false;
    }
    at += 1 + digits;
  }
  if (at < token.size() && (token[at] == 'e' || token[at] == 'E')) {
    ++at;
    at += at < token.size() && (token[at] == '+' || token[at] == '-') ? 1 : 0;
    const std::size_t digits = count_digits(token, at);
    if (digits == 0) {
      return false;
    }
    at += digits;
  }
  return at == token.size();
}

std::string respell_number(std::string_view token) {
  const bool is_float = token.find_first_of(".eE") != std::string_view::npos;
  const bool has_exponent = token.find_first_of("eE") != std::string_view::npos;
  if (!is_number(token) || (token.size() <= kMostDigits && !has_exponent)) {
    return std::string(token);
  }
  if (!is_float) {
    return fmt::format("\"{}\"", token);
  }
  const double number = std::strtod(std::string(token).c_str(), nullptr);
  if (std::isinf(number)) {
    return number < 0 ? "-Infinity" : "Infinity";
  }
  const std::string text = fmt::format("{}", number);
  return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

// The code unit of the escape \uXXXX at `at`, if there is one.
std::optional<char32_t> code_unit(std::string_view text, std::size_t at) {
  constexpr std::size_t kNbytes = 6;
  if (text.size() < kNbytes || at > text.size() - kNbytes || text[at] != '\\' ||
      text[at + 1] != 'u') {
    return std::nullopt;
  }
  std::uint32_t unit = 0;
  const char* const end = text.data() + at + kNbytes;
  const auto [stop, error] = std::from_chars(text.data() + at + 2, end, unit, 16);
  return error == std::errc() && stop == end ? std::optional<char32_t>(unit) : std::nullopt;
}

// Respells the escape at `at`, which moves behind it.
void respell_escape(std::string_view text, std::size_t& at, std::string& out) {
  const auto unit = code_unit(text, at);
  std::size_t nbytes = 2;
  if (unit && is_surrogate(*unit)) {
    const auto next = code_unit(text, at + 6);
    if (*unit >= 0xdc00 || !next || *next < 0xdc00 || *next > 0xdfff) {
      append_utf8(out, *unit);
      at += 6;
      return;
    }
    nbytes = 12;
  }
  out += text.substr(at, nbytes);
  at += nbytes;
}

}  // namespace

std::string respell_json(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  bool in_text = false;
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (in_text && c == '\\') {
      respell_escape(text, at, out);
    } else if (!in_text && (c == '-' || (c >= '0' && c <= '9'))) {
      const std::size_t end = text.find_first_not_of("0123456789+-.eE", at);
      const std::string_view token =
          text.substr(at, end == std::string_view::npos ? end : end - at);
      out += respell_number(token);
      at += token.size();
    } else {
      in_text = in_text != (c == '"');
      out += c;
      ++at;
    }
  }
  return out;
}

}  // namespace npyfs
