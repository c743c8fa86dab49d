// SPDX-License-Identifier: Apache-2.0

#include "formats/bytes/utf8.h"

#include <cstring>

namespace npyfs {

namespace {

// The length that a lead byte announces, 0 for none; and the lowest code point of that length, so
// that over-long forms are found.
struct Lead {
  std::size_t nbytes;
  char32_t bits;
  char32_t lowest;
};

Lead lead_of(unsigned char byte) {
  if (byte < 0x80) {
    return {1, byte, 0};
  }
  if (byte >= 0xc2 && byte < 0xe0) {
    return {2, byte & 0x1fU, 0x80};
  }
  if (byte >= 0xe0 && byte < 0xf0) {
    return {3, byte & 0x0fU, 0x800};
  }
  if (byte >= 0xf0 && byte < 0xf5) {
    return {4, byte & 0x07U, 0x10000};
  }
  return {0, 0, 0};
}

}  // namespace

char32_t next_code_point(std::string_view& text) {
  const auto first = static_cast<unsigned char>(text[0]);
  const Lead lead = lead_of(first);
  bool valid = lead.nbytes > 0 && text.size() >= lead.nbytes;
  char32_t point = lead.bits;
  for (std::size_t i = 1; valid && i < lead.nbytes; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    valid = (byte & 0xc0U) == 0x80;
    point = (point << 6) | (byte & 0x3fU);
  }
  valid = valid && point >= lead.lowest && point <= 0x10ffff && (point < 0xd800 || point > 0xdfff);
  if (!valid) {
    text.remove_prefix(1);
    return 0xdc00 + first;
  }
  text.remove_prefix(lead.nbytes);
  return point;
}

std::uint64_t utf8_length(std::string_view text) {
  std::uint64_t count = 0;
  for (; !text.empty(); ++count) {
    next_code_point(text);
  }
  return count;
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const char32_t point = next_code_point(text);
    if (point >= 0xd800 && point <= 0xdfff) {
      return false;
    }
  }
  return true;
}

void write_utf32(std::string_view text, std::span<std::byte> out) {
  while (out.size() >= sizeof(char32_t)) {
    const char32_t point = text.empty() ? 0 : next_code_point(text);
    std::memcpy(out.data(), &point, sizeof point);
    out = out.subspan(sizeof point);
  }
}

}  // namespace npyfs
