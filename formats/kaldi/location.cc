// SPDX-License-Identifier: Apache-2.0

#include "formats/kaldi/location.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "formats/bytes/error.h"
#include "formats/bytes/words.h"
#include "formats/kaldi/specifier.h"

namespace npyfs {

namespace {

ScriptLocation refused(const char* why) {
  ScriptLocation location;
  location.kind = ScriptLocation::Kind::kRefused;
  location.refusal = why;
  return location;
}

// "ark:x", "scp,p:x": a specifier where a file is meant. A file's name may have a colon too.
bool is_specifier(std::string_view text) {
  const std::size_t colon = text.find(':');
  return colon != std::string_view::npos && (text.front() == 'a' || text.front() == 's') &&
         is_table_specifier(text.substr(0, colon));
}

// Leading blanks and '+' are Kaldi's strtoll's doing.
std::optional<std::int64_t> parse_bound(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
  if (text.starts_with('+')) {
    text.remove_prefix(1);
    if (text.starts_with('-')) {
      return std::nullopt;
    }
  }
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(value)
                                                                  : std::nullopt;
}

struct Bounds {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
};

// `beyond`: by how much the end may pass the last one there is.
std::optional<Bounds> parse_bounds(std::string_view text, std::uint32_t size, std::uint32_t beyond,
                                   const char* what, std::string& why) {
  if (text == ":") {
    return Bounds{0, size};
  }
  const std::size_t colon = text.find(':');
  const auto first =
      colon == std::string_view::npos ? std::nullopt : parse_bound(text.substr(0, colon));
  const auto last = first ? parse_bound(text.substr(colon + 1)) : std::nullopt;
  if (!last) {
    why = fmt::format("is '{}', expected FIRST:LAST or ':'", printable(text));
    return std::nullopt;
  }
  if (*first < 0 || *first > *last || *first >= size || *last >= std::int64_t{size} + beyond) {
    why = fmt::format("is {}:{}, expected 0 <= FIRST <= LAST <= {}, as there are {} {}", *first,
                      *last, std::int64_t{size} + beyond - 1, size, what);
    return std::nullopt;
  }
  const auto end = std::min<std::int64_t>(*last + 1, size);
  return Bounds{static_cast<std::uint32_t>(*first), static_cast<std::uint32_t>(end - *first)};
}

}  // namespace

ScriptLocation parse_location(std::string_view text) {
  ScriptLocation location;
  if (text.ends_with(']')) {
    const std::size_t open = text.find('[');
    if (open == std::string_view::npos || text.find('[', open + 1) != std::string_view::npos ||
        open + 2 >= text.size()) {
      return refused("is no range, expected FILE[FIRST:LAST] with one '['");
    }
    location.range = text.substr(open + 1, text.size() - open - 2);
    text = text.substr(0, open);
  }
  if (text.empty() || text == "-") {
    return refused("is standard input, expected a file");
  }
  if (text.front() == '|') {
    return refused("begins with '|', expected a file");
  }
  if (text.back() == '|') {
    location.kind = ScriptLocation::Kind::kPipe;
    location.path = text.substr(0, text.size() - 1);
    return location;
  }
  if (is_blank(static_cast<unsigned char>(text.front())) ||
      is_blank(static_cast<unsigned char>(text.back()))) {
    return refused("begins or ends with a blank, expected a file");
  }
  if (is_specifier(text)) {
    return refused("is a specifier (ark:, scp:), expected a file");
  }
  const std::size_t colon = text.rfind(':');
  if (colon != std::string_view::npos && colon + 1 < text.size() &&
      text.find_first_not_of("0123456789", colon + 1) == std::string_view::npos) {
    std::uint64_t offset = 0;
    if (std::from_chars(text.data() + colon + 1, text.data() + text.size(), offset).ec !=
        std::errc()) {
      return refused("has an offset beyond 64 bits, expected one within the file");
    }
    location.offset = offset;
    text = text.substr(0, colon);
  } else if (text.find('|') != std::string_view::npos) {
    return refused("has a '|' in it, expected a file");
  }
  location.path = text;
  return location;
}

std::optional<ObjectRange> parse_range(std::string_view text, const Object& object,
                                       std::string& why) {
  constexpr std::uint32_t kBeyond = 3;
  const bool vector = is_vector(object.kind);
  if (!vector && !is_matrix(object.kind)) {
    why = fmt::format("is '{}', expected none for a {}", printable(text), kind_name(object.kind));
    return std::nullopt;
  }
  const std::size_t comma = text.find(',');
  if (vector && comma != std::string_view::npos) {
    why = fmt::format("is '{}', expected FIRST:LAST for a vector", printable(text));
    return std::nullopt;
  }
  const auto rows =
      parse_bounds(text.substr(0, comma), object.rows, kBeyond, vector ? "elements" : "rows", why);
  if (!rows) {
    return std::nullopt;
  }
  Bounds cols{0, vector ? 1 : object.cols};
  if (comma != std::string_view::npos) {
    const auto found = parse_bounds(text.substr(comma + 1), object.cols, 0, "columns", why);
    if (!found) {
      return std::nullopt;
    }
    cols = *found;
  }
  return ObjectRange{rows->first, rows->count, cols.first, cols.count};
}

}  // namespace npyfs
