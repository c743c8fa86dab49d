// SPDX-License-Identifier: Apache-2.0

#include "formats/arrays/names.h"

#include <fmt/format.h>

#include <cstdint>

namespace npyfs {

std::string escape_name(std::string_view name) {
  if (name.empty()) {
    return "%";
  }
  if (name == "." || name == "..") {
    return name.size() == 1 ? "%2E" : "%2E%2E";
  }
  std::string out;
  out.reserve(name.size());
  for (const char c : name) {
    if (c == '/') {
      out += "%2F";
    } else if (c == '\0') {
      out += "%00";
    } else {
      out += c;
    }
  }
  return out;
}

std::string unescape_name(std::string_view name) {
  if (name == "%") {
    return {};
  }
  std::string out;
  out.reserve(name.size());
  for (std::size_t i = 0; i < name.size(); ++i) {
    const std::string_view escape = name.substr(i, 3);
    if (escape == "%2F" || escape == "%2E") {
      out += escape == "%2F" ? '/' : '.';
      i += 2;
    } else if (escape == "%00") {
      out += '\0';
      i += 2;
    } else {
      out += name[i];
    }
  }
  return out;
}

std::string shorten_name(const std::string& name, std::size_t suffix_nbytes) {
  constexpr std::size_t kMostNbytes = 255;
  if (name.size() + suffix_nbytes <= kMostNbytes) {
    return name;
  }
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : name) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  }
  return fmt::format("{}~{:016x}", std::string_view(name).substr(0, 200), hash);
}

}  // namespace npyfs
