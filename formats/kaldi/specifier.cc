// SPDX-License-Identifier: Apache-2.0

#include "formats/kaldi/specifier.h"

#include <algorithm>
#include <array>
#include <vector>

namespace npyfs {

namespace {

// An option, and who takes it.
struct Option {
  std::string_view word;
  bool of_readers;
  bool of_writers;
};
constexpr std::array<Option, 13> kOptions = {{
    {"b", true, true},
    {"t", true, true},
    {"f", false, true},
    {"nf", false, true},
    {"o", true, false},
    {"no", true, false},
    {"p", true, true},
    {"np", true, false},
    {"s", true, false},
    {"ns", true, false},
    {"cs", true, false},
    {"ncs", true, false},
    {"bg", true, false},
}};

// One is between any two commas and blanks, empty or not.
std::vector<std::string_view> split_words(std::string_view words) {
  std::vector<std::string_view> all;
  for (std::size_t at = 0; at <= words.size();) {
    const std::size_t end = std::min(words.find_first_of(", ", at), words.size());
    all.push_back(words.substr(at, end - at));
    at = end + 1;
  }
  return all;
}

bool is_option(std::string_view word, bool Option::*of) {
  return std::any_of(kOptions.begin(), kOptions.end(),
                     [&](const Option& option) { return option.word == word && option.*of; });
}

// Of a writer: ark, scp, or both in this order.
bool is_writers(std::string_view words) {
  bool archive = false;
  bool script = false;
  for (const std::string_view word : split_words(words)) {
    if (word == "ark" && !archive && !script) {
      archive = true;
    } else if (word == "scp" && !script) {
      script = true;
    } else if (!is_option(word, &Option::of_writers)) {
      return false;
    }
  }
  return archive || script;
}

}  // namespace

std::optional<TableSpecifier> parse_table_specifier(std::string_view words) {
  TableSpecifier specifier;
  bool has_table = false;
  for (const std::string_view word : split_words(words)) {
    if ((word == "ark" || word == "scp") && !has_table) {
      has_table = true;
      specifier.is_script = word == "scp";
    } else if (!is_option(word, &Option::of_readers)) {
      return std::nullopt;
    }
    specifier.permissive = word == "p" || (specifier.permissive && word != "np");
    specifier.keys_sorted = word == "s" || (specifier.keys_sorted && word != "ns");
  }
  return has_table ? std::optional(specifier) : std::nullopt;
}

bool is_table_specifier(std::string_view words) {
  return parse_table_specifier(words).has_value() || is_writers(words);
}

}  // namespace npyfs
