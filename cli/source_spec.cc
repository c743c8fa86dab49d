// SPDX-License-Identifier: Apache-2.0

#include "cli/source_spec.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <utility>
#include <vector>

#include "cli/expand.h"
#include "cli/nearest.h"
#include "formats/bytes/error.h"
#include "formats/bytes/paths.h"
#include "formats/registry.h"

namespace npyfs {

namespace {

constexpr std::string_view kLettersAndDigits =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

bool consists_of(std::string_view text, std::string_view more_than_letters_and_digits) {
  return std::all_of(text.begin(), text.end(), [&](char c) {
    return kLettersAndDigits.find(c) != std::string_view::npos ||
           more_than_letters_and_digits.find(c) != std::string_view::npos;
  });
}

std::vector<std::string> sorted_format_names() {
  std::vector<std::string> names;
  for (const Format& format : formats()) {
    names.emplace_back(format.name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

[[noreturn]] void refuse(std::string_view text, std::string_view reason,
                         std::string_view hint = "") {
  throw Error(ErrorKind::kUsage,
              fmt::format("SOURCE '{}': {}, expected [SPLIT[/ARRAY]=][FORMAT:]LOCATION with FORMAT "
                          "one of {}{}",
                          text, reason, format_names(), hint));
}

// Also takes a format's own way to write its name.
const Format& parse_format(std::string_view name, SourceSpec& spec) {
  if (const Format* format = find_format(name)) {
    return *format;
  }
  for (const Format& format : formats()) {
    if (format.takes_specifier != nullptr && format.takes_specifier(name, spec.said)) {
      return format;
    }
  }
  const bool is_split_word = is_legal_split(name) && !split_of_name(name).empty();
  refuse(spec.text, fmt::format("no such path, and '{}' before the ':' is no FORMAT", name),
         is_split_word ? fmt::format("; did you mean '{}='?", name)
                       : did_you_mean(name, sorted_format_names()));
}

void parse_split(std::string_view target, SourceSpec& spec) {
  const std::size_t slash = target.find('/');
  spec.split = target.substr(0, slash);
  if (!is_legal_split(spec.split)) {
    refuse(spec.text, fmt::format("no such path, and '{}' before the '=' is no SPLIT (letters, "
                                  "digits, '_', '.' and '-')",
                                  target));
  }
  if (slash != std::string_view::npos) {
    spec.array = target.substr(slash + 1);
    if (spec.array.empty() || spec.array.find('/') != std::string::npos) {
      refuse(spec.text, fmt::format("'{}' after the '/' is no name of an array", spec.array));
    }
  }
}

// Whether what stands before a ':' is meant as a FORMAT. Behind SPLIT= the rest may be a pattern
// whose folders hold a ':'.
bool looks_like_format(std::string_view name) { return consists_of(name, "_,+-"); }

// "s3://bucket/x": a LOCATION as it is, but "tar://x" names a format.
bool is_url(std::string_view text) {
  const std::string_view scheme = url_scheme(text);
  return !scheme.empty() && find_format(scheme) == nullptr;
}

}  // namespace

// A leading dot is kept for .npyfs; attrs.* stand beside the splits.
bool is_legal_split(std::string_view name) {
  return !name.empty() && name.front() != '.' && name.size() <= 255 && consists_of(name, "_.-") &&
         name != "attrs.npy" && name != "attrs.json";
}

SourceSpec parse_source(const std::string& text) {
  SourceSpec spec;
  spec.text = text;
  spec.location = text;
  const std::size_t mark = text.find_first_of("=:");
  if (mark == std::string::npos || is_url(text) || path_exists(text)) {
    if (text.empty()) {
      throw Error(ErrorKind::kUsage, "a SOURCE is empty");
    }
    return spec;
  }
  if (text[mark] == '=') {
    parse_split(std::string_view(text).substr(0, mark), spec);
    spec.location = text.substr(mark + 1);
  }
  const std::size_t colon = spec.location.find(':');
  if (colon != std::string::npos && !is_url(spec.location) && !path_exists(spec.location)) {
    const std::string name = spec.location.substr(0, colon);
    // A list's later item may have a ':' too, no FORMAT has a ';'.
    const bool in_list = name.find(';') != std::string::npos;
    if (spec.split.empty() ? !in_list : looks_like_format(name)) {
      spec.format = &parse_format(name, spec);
      spec.location = spec.location.substr(colon + 1);
    }
  }
  if (spec.location.empty()) {
    refuse(text, "LOCATION is missing");
  }
  return spec;
}

std::string split_of_name(std::string_view path) {
  while (path.size() > 1 && path.ends_with('/')) {
    path.remove_suffix(1);
  }
  const std::string_view name = path.substr(path.find_last_of('/') + 1);
  std::string word(name.substr(0, name.find_first_of(".-_")));
  while (!word.empty() && std::isdigit(static_cast<unsigned char>(word.back())) != 0) {
    word.pop_back();
  }
  std::transform(word.begin(), word.end(), word.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 11> kWords = {{
      {"train", "train"},
      {"training", "train"},
      {"tr", "train"},
      {"val", "val"},
      {"valid", "val"},
      {"validation", "val"},
      {"dev", "val"},
      {"cv", "val"},
      {"test", "test"},
      {"tst", "test"},
      {"eval", "test"},
  }};
  for (const auto& [known, split] : kWords) {
    if (word == known) {
      return std::string(split);
    }
  }
  return {};
}

std::string format_names() { return fmt::format("{}", fmt::join(sorted_format_names(), ", ")); }

}  // namespace npyfs
