// SPDX-License-Identifier: Apache-2.0

#include "formats/bytes/utf8.h"

#include <cstring>

namespace npyfs {

namespace {

// The code point at `at`, or, for a byte of no valid sequence, the surrogate that stands for it.
char32_t next_escaped(std::string_view text, std::size_t& at) {
  const std::size_t begin = at;
  const auto point = next_code_point(text, at);
  if (point && !is_surrogate(*point)) {
    return *point;
  }
  at = begin + 1;
  return 0xdc00 + static_cast<unsigned char>(text[begin]);
}

}  // namespace

std::optional<char32_t> next_code_point(std::string_view text, std::size_t& at) {
  const auto lead = static_cast<unsigned char>(text[at++]);
  if (lead < 0x80) {
    return lead;
  }
  const int more = lead >= 0xf0 ? 3 : lead >= 0xe0 ? 2 : 1;
  if (lead < 0xc2 || lead > 0xf4) {
    return std::nullopt;
  }
  char32_t point = lead & (0x3fU >> more);
  for (int i = 0; i < more; ++i) {
    if (at == text.size()) {
      return std::nullopt;
    }
    const auto byte = static_cast<unsigned char>(text[at]);
    // The second byte is bounded where a shorter sequence would do, or beyond U+10FFFF.
    const bool fits = i > 0 || ((lead != 0xe0 || byte >= 0xa0) && (lead != 0xf0 || byte >= 0x90) &&
                                (lead != 0xf4 || byte < 0x90));
    if ((byte & 0xc0) != 0x80 || !fits) {
      return std::nullopt;
    }
    point = point << 6 | (byte & 0x3fU);
    ++at;
  }
  return point;
}

void append_utf8(std::string& out, char32_t point) {
  if (point < 0x80) {
    out += static_cast<char>(point);
  } else if (point < 0x800) {
    out += static_cast<char>(0xc0 | point >> 6);
    out += static_cast<char>(0x80 | (point & 0x3f));
  } else if (point < 0x10000) {
    out += static_cast<char>(0xe0 | point >> 12);
    out += static_cast<char>(0x80 | (point >> 6 & 0x3f));
    out += static_cast<char>(0x80 | (point & 0x3f));
  } else {
    out += static_cast<char>(0xf0 | point >> 18);
    out += static_cast<char>(0x80 | (point >> 12 & 0x3f));
    out += static_cast<char>(0x80 | (point >> 6 & 0x3f));
    out += static_cast<char>(0x80 | (point & 0x3f));
  }
}

bool is_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const auto point = next_code_point(text, at);
    if (!point || is_surrogate(*point)) {
      return false;
    }
  }
  return true;
}

std::uint64_t utf8_length(std::string_view text) {
  std::uint64_t count = 0;
  for (std::size_t at = 0; at < text.size(); ++count) {
    next_escaped(text, at);
  }
  return count;
}

void write_utf32(std::string_view text, std::span<std::byte> out) {
  std::size_t at = 0;
  while (out.size() >= sizeof(char32_t)) {
    const char32_t point = at < text.size() ? next_escaped(text, at) : 0;
    std::memcpy(out.data(), &point, sizeof point);
    out = out.subspan(sizeof point);
  }
}

}  // namespace npyfs
