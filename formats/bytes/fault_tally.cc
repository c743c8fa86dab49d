// SPDX-License-Identifier: Apache-2.0

#include "formats/bytes/fault_tally.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace npyfs {

namespace {

// Where the name of a record's key ends that begins at `at`, as messages have it: "(key NAME)".
std::size_t end_of_key(std::string_view said, std::size_t at) {
  std::size_t close = said.find(')', at);
  while (close != std::string_view::npos && close + 1 < said.size() && said[close + 1] != ' ' &&
         said[close + 1] != ',') {
    close = said.find(')', close + 1);
  }
  return std::min(close, said.size());
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

// How many bytes from `at` on are a number: a digit, or a word of hexadecimal ones, such as a
// checksum.
std::size_t number_nbytes(std::string_view said, std::size_t at) {
  const std::string_view rest = said.substr(at);
  const auto end = std::find_if_not(rest.begin(), rest.end(), is_word);
  const std::string_view word = rest.substr(0, static_cast<std::size_t>(end - rest.begin()));
  const bool whole = at == 0 || !is_word(said[at - 1]);
  const bool hexadecimal =
      word.find_first_not_of("0123456789abcdef", word.starts_with("0x") ? 2 : 0) ==
      std::string_view::npos;
  return whole && hexadecimal && std::any_of(word.begin(), word.end(), is_digit) ? word.size()
         : is_digit(said[at])                                                    ? 1
                                                                                 : 0;
}

// The message without its numbers, what it quotes, and keys.
std::string pattern_of(std::string_view said) {
  constexpr std::string_view kKey = "(key ";
  std::string pattern;
  for (std::size_t at = 0; at < said.size(); ++at) {
    if (said.substr(at).starts_with(kKey)) {
      pattern += kKey;
      at = end_of_key(said, at + kKey.size()) - 1;
      continue;
    }
    const char c = said[at];
    const bool quotes = c == '\'' || c == '"';
    const std::size_t close = quotes ? said.find(c, at + 1) : std::string_view::npos;
    if (close != std::string_view::npos) {
      pattern += "''";
      at = close;
    } else if (const std::size_t nbytes = number_nbytes(said, at); nbytes == 0) {
      pattern += c;
    } else {
      at += nbytes - 1;
      if (pattern.ends_with(" -")) {
        pattern.back() = '#';  // its sign
      } else if (!pattern.ends_with('#')) {
        pattern += '#';
      }
    }
  }
  return pattern;
}

}  // namespace

std::size_t FaultKinds::number_of(std::string_view said) {
  if (!patterns_.empty() && said == last_said_) {
    return last_number_;
  }
  std::string pattern = pattern_of(said);
  const auto known = std::find(patterns_.begin(), patterns_.end(), pattern);
  last_number_ = static_cast<std::size_t>(known - patterns_.begin());
  last_said_ = said;
  if (known == patterns_.end() && patterns_.size() < kMost) {
    patterns_.push_back(std::move(pattern));
  }
  return last_number_;
}

void FaultTally::add(std::string_view said, std::string_view text, std::uint64_t order) {
  ++count_;
  const std::size_t number = numbers_.number_of(said);
  if (number == kMostKinds) {
    if (++of_other_kinds_ == 1) {
      other_text_ = text;
    }
    return;
  }
  if (number == kinds_.size()) {
    kinds_.push_back({std::string(text), order, 0});
  }
  Kind& kind = kinds_[number];
  ++kind.count;
  if (order < kind.order) {
    kind.order = order;
    kind.text = text;
  }
}

std::vector<FaultTally::Kind> FaultTally::sorted() const {
  std::vector<Kind> kinds = kinds_;
  std::stable_sort(kinds.begin(), kinds.end(),
                   [](const Kind& a, const Kind& b) { return a.order < b.order; });
  return kinds;
}

std::string FaultTally::summary() const { return sorted().front().text + and_more(count_); }

std::string FaultTally::and_more(std::uint64_t count) const {
  return count > 1 ? fmt::format(" (and {} more {})", count - 1, unit_) : "";
}

void FaultTally::tell(const std::function<void(const std::string& text)>& warn) const {
  const std::string outcome = outcome_.empty() ? "" : "; " + outcome_;
  for_each([&](const std::string& text, std::uint64_t count) {
    warn(text + outcome + and_more(count));
  });
}

void FaultTally::for_each(
    const std::function<void(const std::string& text, std::uint64_t count)>& take) const {
  for (const Kind& kind : sorted()) {
    take(kind.text, kind.count);
  }
  if (of_other_kinds_ > 0) {
    take(fmt::format("there are more than {} kinds of faults; one of the others is: {}", kMostKinds,
                     other_text_),
         of_other_kinds_);
  }
}

}  // namespace npyfs
