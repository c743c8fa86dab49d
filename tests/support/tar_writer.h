// SPDX-License-Identifier: Apache-2.0
//
// Tar archives for tests that need what no golden file has.

#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

namespace npyfs::testing {

struct TarEntry {
  std::string name;
  std::string payload;
  char type = '0';
  std::string link = {};
  std::string size_field = {};  // as it is written; empty: of the payload
  std::string magic = std::string(
      "ustar\0"
      "00",
      8);
};

inline void put_text(std::string& block, std::size_t at, const std::string& text) {
  block.replace(at, text.size(), text);
}

inline std::string octal(std::uint64_t value, int digits) {
  char text[32];
  std::snprintf(text, sizeof text, "%0*llo", digits, static_cast<unsigned long long>(value));
  return text;
}

inline void put_checksum(std::string& block) {
  put_text(block, 148, "        ");
  std::uint32_t sum = 0;
  for (const char c : block) {
    sum += static_cast<unsigned char>(c);
  }
  put_text(block, 148, octal(sum, 6) + std::string("\0 ", 2));
}

inline std::string padded(std::string payload) {
  payload.resize((payload.size() + 511) / 512 * 512);
  return payload;
}

inline std::string tar_header(const TarEntry& entry) {
  std::string block(512, '\0');
  put_text(block, 0, entry.name);
  put_text(block, 100, "0000644");
  put_text(block, 124,
           entry.size_field.empty() ? octal(entry.payload.size(), 11) : entry.size_field);
  put_text(block, 136, octal(0, 11));
  block[156] = entry.type;
  put_text(block, 157, entry.link);
  put_text(block, 257, entry.magic);
  put_checksum(block);
  return block;
}

inline std::string tar_member(const TarEntry& entry) {
  return tar_header(entry) + padded(entry.payload);
}

inline std::string tar_end() { return std::string(1024, '\0'); }

}  // namespace npyfs::testing
