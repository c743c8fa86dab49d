// SPDX-License-Identifier: Apache-2.0

#include "formats/bytes/fault_tally.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace npyfs {

namespace {

// The message without its numbers and what it quotes.
std::string pattern_of(std::string_view said) {
  std::string pattern;
  for (std::size_t at = 0; at < said.size(); ++at) {
    const char c = said[at];
    const std::size_t close = c == '\'' ? said.find('\'', at + 1) : std::string_view::npos;
    if (close != std::string_view::npos) {
      pattern += "''";
      at = close;
    } else if (std::isdigit(static_cast<unsigned char>(c)) == 0) {
      pattern += c;
    } else if (pattern.ends_with(" -")) {
      pattern.back() = '#';  // its sign
    } else if (!pattern.ends_with('#')) {
      pattern += '#';
    }
  }
  return pattern;
}

}  // namespace

void FaultTally::add(std::string_view said, std::string_view text, std::uint64_t order) {
  ++count_;
  std::string pattern = pattern_of(said);
  const auto known = std::find_if(kinds_.begin(), kinds_.end(),
                                  [&](const Kind& kind) { return kind.pattern == pattern; });
  if (known != kinds_.end()) {
    ++known->count;
    if (order < known->order) {
      known->order = order;
      known->text = text;
    }
  } else if (kinds_.size() < kMostKinds) {
    kinds_.push_back({std::move(pattern), std::string(text), order, 1});
  } else {
    ++of_other_kinds_;
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
  for (const Kind& kind : sorted()) {
    warn(kind.text + outcome + and_more(kind.count));
  }
  if (of_other_kinds_ > 0) {
    warn(fmt::format("{} more {} have faults of further kinds{}", of_other_kinds_, unit_, outcome));
  }
}

}  // namespace npyfs
