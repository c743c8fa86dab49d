// SPDX-License-Identifier: Apache-2.0
//
// Bytes looked at as text.

#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace npyfs {

// The same bytes; lives as long as they do.
inline std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// `text` without those of `blanks` that it begins or ends with.
inline std::string_view strip(std::string_view text, std::string_view blanks) {
  const std::size_t begin = text.find_first_not_of(blanks);
  return begin == std::string_view::npos
             ? std::string_view()
             : text.substr(begin, text.find_last_not_of(blanks) - begin + 1);
}

}  // namespace npyfs
