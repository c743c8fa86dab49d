// SPDX-License-Identifier: Apache-2.0

#include "cli/brace.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>

#include "formats/bytes/error.h"

namespace npyfs {

namespace {

constexpr std::size_t kMostTexts = 1'000'000;
constexpr std::size_t kDeepestNesting = 32;

[[noreturn]] void refuse_length(std::string_view pattern) {
  throw Error(ErrorKind::kUsage,
              fmt::format("'{}' stands for more than {} files", pattern, kMostTexts));
}

void check_pairs(std::string_view pattern) {
  std::size_t depth = 0;
  for (const char c : pattern) {
    if (c == '{' && ++depth > kDeepestNesting) {
      throw Error(ErrorKind::kUsage,
                  fmt::format("'{}' nests braces more than {} deep", pattern, kDeepestNesting));
    }
    if (c == '}' && depth-- == 0) {
      throw Error(ErrorKind::kUsage,
                  fmt::format("'{}' has a '}}' without its '{{', and no file of that name exists",
                              pattern));
    }
  }
  if (depth != 0) {
    throw Error(
        ErrorKind::kUsage,
        fmt::format("'{}' has a '{{' without its '}}', and no file of that name exists", pattern));
  }
}

// Where the brace that opens at `open` closes.
std::size_t closing_brace(std::string_view text, std::size_t open) {
  std::size_t depth = 0;
  for (std::size_t at = open;; ++at) {
    if (text[at] == '{') {
      ++depth;
    } else if (text[at] == '}' && --depth == 0) {
      return at;
    }
  }
}

// Cuts at the commas that lie in no inner brace.
std::vector<std::string_view> split_alternatives(std::string_view body) {
  std::vector<std::string_view> parts;
  std::size_t begin = 0;
  std::size_t depth = 0;
  for (std::size_t at = 0; at < body.size(); ++at) {
    if (body[at] == '{') {
      ++depth;
    } else if (body[at] == '}') {
      --depth;
    } else if (body[at] == ',' && depth == 0) {
      parts.push_back(body.substr(begin, at - begin));
      begin = at + 1;
    }
  }
  parts.push_back(body.substr(begin));
  return parts;
}

std::optional<std::int64_t> parse_number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (fault != std::errc() || end != text.data() + text.size()) {
    return std::nullopt;
  }
  return value;
}

bool starts_with_zero(std::string_view bound) {
  const std::string_view digits = bound.substr(bound.starts_with('-') ? 1 : 0);
  return digits.size() > 1 && digits.front() == '0';
}

bool is_letter_range(std::string_view first, std::string_view last) {
  const auto same_case = [](char a, char b, char low, char high) {
    return low <= a && a <= high && low <= b && b <= high;
  };
  return first.size() == 1 && last.size() == 1 &&
         (same_case(first[0], last[0], 'a', 'z') || same_case(first[0], last[0], 'A', 'Z'));
}

// The numbers from `first` to `last`, both included where the step meets them.
std::vector<std::int64_t> count_out(std::int64_t first, std::int64_t last, std::int64_t step,
                                    std::string_view pattern) {
  const auto magnitude = [](std::int64_t v) {
    return v < 0 ? 0 - static_cast<std::uint64_t>(v) : static_cast<std::uint64_t>(v);
  };
  const std::uint64_t stride = step == 0 ? 1 : magnitude(step);
  const bool down = last < first;
  const std::uint64_t distance =
      down ? static_cast<std::uint64_t>(first) - static_cast<std::uint64_t>(last)
           : static_cast<std::uint64_t>(last) - static_cast<std::uint64_t>(first);
  if (distance / stride >= kMostTexts) {
    refuse_length(pattern);
  }
  std::vector<std::int64_t> values;
  for (std::uint64_t i = 0; i <= distance / stride; ++i) {
    const std::uint64_t offset = i * stride;
    values.push_back(static_cast<std::int64_t>(static_cast<std::uint64_t>(first) +
                                               (down ? 0 - offset : offset)));
  }
  return values;
}

// "000..123", "10..1..3", "a..e"; nothing where `body` is no range.
std::optional<std::vector<std::string>> expand_range(std::string_view body) {
  const std::size_t dots = body.find("..");
  if (dots == std::string_view::npos) {
    return std::nullopt;
  }
  const std::string_view first = body.substr(0, dots);
  std::string_view last = body.substr(dots + 2);
  std::int64_t step = 1;
  if (const std::size_t more = last.find(".."); more != std::string_view::npos) {
    const std::optional<std::int64_t> given = parse_number(last.substr(more + 2));
    if (!given) {
      return std::nullopt;
    }
    step = *given;
    last = last.substr(0, more);
  }

  std::vector<std::string> texts;
  if (is_letter_range(first, last)) {
    for (const std::int64_t letter : count_out(first[0], last[0], step, body)) {
      texts.emplace_back(1, static_cast<char>(letter));
    }
    return texts;
  }
  const std::optional<std::int64_t> from = parse_number(first);
  const std::optional<std::int64_t> to = parse_number(last);
  if (!from || !to) {
    return std::nullopt;
  }
  const bool padded = starts_with_zero(first) || starts_with_zero(last);
  const std::size_t width = padded ? std::max(first.size(), last.size()) : 0;
  for (const std::int64_t number : count_out(*from, *to, step, body)) {
    texts.push_back(fmt::format("{:0{}}", number, width));
  }
  return texts;
}

std::vector<std::string> expand_pairs(std::string_view pattern);

// What one pair of braces with `body` in it stands for.
std::vector<std::string> expand_group(std::string_view body) {
  const std::vector<std::string_view> parts = split_alternatives(body);
  if (parts.size() == 1) {
    if (std::optional<std::vector<std::string>> range = expand_range(body)) {
      return *std::move(range);
    }
    std::vector<std::string> literal = expand_pairs(body);
    for (std::string& text : literal) {
      text.insert(text.begin(), '{');
      text.push_back('}');
    }
    return literal;
  }
  std::vector<std::string> texts;
  for (const std::string_view part : parts) {
    for (std::string& text : expand_pairs(part)) {
      texts.push_back(std::move(text));
    }
  }
  return texts;
}

// `pattern` has its braces in pairs.
std::vector<std::string> expand_pairs(std::string_view pattern) {
  std::vector<std::string> texts = {""};
  std::size_t at = 0;
  while (at < pattern.size()) {
    const std::size_t open = std::min(pattern.find('{', at), pattern.size());
    for (std::string& text : texts) {
      text += pattern.substr(at, open - at);
    }
    if (open == pattern.size()) {
      break;
    }
    const std::size_t close = closing_brace(pattern, open);
    const std::vector<std::string> group = expand_group(pattern.substr(open + 1, close - open - 1));
    if (texts.size() * group.size() > kMostTexts) {
      refuse_length(pattern);
    }
    std::vector<std::string> product;
    product.reserve(texts.size() * group.size());
    for (const std::string& head : texts) {
      for (const std::string& tail : group) {
        product.push_back(head + tail);
      }
    }
    texts = std::move(product);
    at = close + 1;
  }
  return texts;
}

}  // namespace

std::vector<std::string> expand_braces(std::string_view pattern) {
  check_pairs(pattern);
  return expand_pairs(pattern);
}

}  // namespace npyfs
