// SPDX-License-Identifier: Apache-2.0
//
// Words between blanks, whatever the locale: what C calls white space, and nothing of Unicode's.

#pragma once

#include <algorithm>
#include <string_view>

namespace npyfs {

constexpr std::string_view kBlanks = " \t\n\v\f\r";
inline bool is_blank(int c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

// The first word of `text` from `at` on, which moves behind it; empty where there is none.
inline std::string_view next_word(std::string_view text, std::size_t& at) {
  const std::size_t begin = std::min(text.find_first_not_of(kBlanks, at), text.size());
  at = std::min(text.find_first_of(kBlanks, begin), text.size());
  return text.substr(begin, at - begin);
}

// Calls take(std::string_view) for each word of `text`.
template <typename Take>
void for_each_word(std::string_view text, const Take& take) {
  std::size_t at = 0;
  for (std::string_view word = next_word(text, at); !word.empty(); word = next_word(text, at)) {
    take(word);
  }
}

}  // namespace npyfs
