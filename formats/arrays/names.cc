// SPDX-License-Identifier: Apache-2.0

#include "formats/arrays/names.h"

#include <fmt/format.h>

#include <cstdint>

#include "formats/bytes/utf8.h"

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
  for (std::size_t at = 0; at < name.size();) {
    const std::size_t begin = at;
    const auto point = next_code_point(name, at);
    if (!point || is_surrogate(*point)) {
      at = begin + 1;
    }
    if (!point || is_surrogate(*point) || *point == '/' || *point == 0) {
      out += fmt::format("%{:02X}", static_cast<unsigned char>(name[begin]));
    } else {
      out += name.substr(begin, at - begin);
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
