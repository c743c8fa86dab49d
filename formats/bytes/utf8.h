// SPDX-License-Identifier: Apache-2.0
//
// UTF-8, one code point at a time, as Python reads and writes it.

#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace npyfs {

inline bool is_surrogate(char32_t point) { return point >= 0xd800 && point <= 0xdfff; }

// The code point that begins at `at`, which moves behind it. Where the bytes are not UTF-8:
// nothing, and `at` moves behind the longest prefix of a valid sequence (at least one byte), so
// that one U+FFFD per call is what Python's errors='replace' gives. A surrogate coded as three
// bytes is returned as it is, as Python's 'surrogatepass' has it; callers that mind ask
// is_surrogate.
inline std::optional<char32_t> next_code_point(std::string_view text, std::size_t& at) {
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

inline void append_utf8(std::string& out, char32_t point) {
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

}  // namespace npyfs
