// SPDX-License-Identifier: Apache-2.0

#include "cli/arguments.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <optional>
#include <span>

#include "cli/nearest.h"
#include "cli/source_spec.h"
#include "formats/bytes/byte_source.h"
#include "formats/bytes/error.h"
#include "formats/bytes/text_view.h"
#include "formats/payloads/payload_table.h"
#include "formats/registry.h"

namespace npyfs {

namespace {

[[noreturn]] void refuse(std::string_view option, std::string_view value,
                         std::string_view expected) {
  throw Error(ErrorKind::kUsage, fmt::format("{}: '{}' is not {}", option, value, expected));
}

// Where `text` stands in `words`.
std::size_t parse_word(std::string_view option, std::string_view text,
                       std::span<const std::string> words) {
  const auto found = std::find(words.begin(), words.end(), text);
  if (found == words.end()) {
    refuse(option, text,
           fmt::format("one of {}{}", fmt::join(words, ", "), did_you_mean(text, words)));
  }
  return static_cast<std::size_t>(found - words.begin());
}

// Whatever a format or a payload is called.
std::vector<std::string> decode_kinds() {
  std::vector<std::string> words = {"raw"};
  for (const Format& format : formats()) {
    std::copy_if(format.decode_kinds.begin(), format.decode_kinds.end(), std::back_inserter(words),
                 [&](const std::string& word) {
                   return std::find(words.begin(), words.end(), word) == words.end();
                 });
  }
  for (const Payload& payload : payloads()) {
    words.emplace_back(payload.name);
  }
  return words;
}

template <typename T>
std::optional<T> parse_whole(std::string_view text) {
  T value{};
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (fault != std::errc() || end != text.data() + text.size()) {
    return std::nullopt;
  }
  return value;
}

}  // namespace

std::pair<std::string, std::string> parse_assignment(std::string_view option,
                                                     const std::string& text) {
  const std::size_t mark = text.find('=');
  if (mark == std::string::npos || mark == 0) {
    refuse(option, text, "NAME=VALUE");
  }
  return {text.substr(0, mark), text.substr(mark + 1)};
}

std::uint64_t parse_nbytes(std::string_view option, std::string_view text) {
  constexpr std::string_view kUnits = "KMGT";
  constexpr std::string_view kExpected = "a size in bytes, such as 512M or 4G";
  std::string_view digits = text;
  double factor = 1;
  if (!digits.empty()) {
    const int last = std::toupper(static_cast<unsigned char>(digits.back()));
    const std::size_t unit = kUnits.find(static_cast<char>(last));
    if (unit != std::string_view::npos) {
      factor = std::ldexp(1.0, static_cast<int>(10 * (unit + 1)));
      digits.remove_suffix(1);
    }
  }
  if (digits.empty() || digits.find_first_not_of("0123456789.") != std::string_view::npos) {
    refuse(option, text, kExpected);
  }
  const std::optional<double> number = parse_whole<double>(digits);
  if (!number || *number * factor >= 0x1p63) {
    refuse(option, text, kExpected);
  }
  return static_cast<std::uint64_t>(*number * factor);
}

std::uint64_t parse_count(std::string_view option, std::string_view text, std::uint64_t most) {
  const std::optional<std::uint64_t> value = parse_whole<std::uint64_t>(text);
  if (!value || *value > most) {
    refuse(option, text, fmt::format("a number from 0 to {}", most));
  }
  return *value;
}

std::string parse_split_name(std::string_view option, const std::string& text) {
  if (!is_legal_split(text)) {
    refuse(option, text, "a split's name of letters, digits, '_', '.' and '-'");
  }
  return text;
}

std::vector<std::pair<std::string, double>> parse_shares(std::string_view option,
                                                         const std::string& text) {
  constexpr double kRounding = 1e-6;
  std::vector<std::pair<std::string, double>> shares;
  double sum = 0;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const auto [name, share_text] = parse_assignment(option, text.substr(at, end - at));
    const auto share = parse_whole<double>(share_text);
    const bool known = std::any_of(shares.begin(), shares.end(),
                                   [&, &given = name](const auto& s) { return s.first == given; });
    if (!share || !(*share >= 0 && *share <= 1) || known) {
      refuse(option, text, "splits, each once, with shares from 0 to 1: train=0.8,val=0.2");
    }
    shares.emplace_back(parse_split_name(option, name), *share);
    sum += *share;
    at = end + 1;
  }
  if (std::abs(sum - 1) > kRounding) {
    refuse(option, text, fmt::format("shares that add up to 1, not {}", sum));
  }
  return shares;
}

Shape parse_shape(std::string_view option, std::string_view text) {
  std::string_view inner = strip(text, " ");
  if (inner.starts_with('(') && inner.ends_with(')')) {
    inner = strip(inner.substr(1, inner.size() - 2), " ");
    if (inner.ends_with(',')) {  // Python's (5,)
      inner.remove_suffix(1);
    }
  }
  Shape shape;
  while (!inner.empty()) {
    const std::size_t comma = inner.find(',');
    const std::optional<std::uint64_t> dimension =
        parse_whole<std::uint64_t>(strip(inner.substr(0, comma), " "));
    if (!dimension || comma == inner.size() - 1) {
      refuse(option, text, "a shape such as 3,224,224");
    }
    shape.push_back(*dimension);
    inner = comma == std::string_view::npos ? "" : inner.substr(comma + 1);
  }
  constexpr std::size_t kMostDimensions = 31;  // numpy allows 32, and records are one of them
  if (shape.size() > kMostDimensions || !element_count(shape)) {
    refuse(option, text, "a shape that numpy can hold");
  }
  return shape;
}

DType parse_dtype(std::string_view option, std::string_view text) {
  if (std::optional<DType> dtype = DType::from_user(text)) {
    return *std::move(dtype);
  }
  static const std::array<std::string, 14> kCommon = {
      "bool",   "int8",   "int16",   "int32",   "int64",   "uint8",     "uint16",
      "uint32", "uint64", "float16", "float32", "float64", "complex64", "complex128"};
  refuse(option, text,
         fmt::format("a dtype that numpy understands, such as float32, uint8, >i2 or S7{}",
                     did_you_mean(text, kCommon)));
}

Layout parse_layout(std::string_view option, std::string_view text) {
  static const std::array<std::string, 4> kWords = {"stack", "concat", "pad", "bytes"};
  constexpr std::array<Layout, 4> kLayouts = {Layout::kStack, Layout::kConcat, Layout::kPad,
                                              Layout::kBytes};
  return kLayouts[parse_word(option, text, kWords)];
}

Verify parse_verify(std::string_view option, std::string_view text) {
  static const std::array<std::string, 3> kWords = {"read", "mount", "never"};
  constexpr std::array<Verify, 3> kKinds = {Verify::kRead, Verify::kMount, Verify::kNever};
  return kKinds[parse_word(option, text, kWords)];
}

std::string parse_decode_kind(std::string_view option, const std::string& text) {
  static const std::vector<std::string> words = decode_kinds();
  return words[parse_word(option, text, words)];
}

ImageSize parse_image_size(std::string_view option, std::string_view text) {
  constexpr std::uint32_t kMost = 65535;
  std::vector<std::uint32_t> numbers;
  for (std::string_view left = text; !left.empty() && numbers.size() < 4;) {
    const std::size_t mark = std::min(left.find('x'), left.size());
    const auto number = parse_whole<std::uint32_t>(left.substr(0, mark));
    numbers.push_back(number && mark + 1 != left.size() ? *number : 0);
    left.remove_prefix(std::min(mark + 1, left.size()));
  }
  const bool sized = (numbers.size() == 2 || numbers.size() == 3) && numbers[0] > 0 &&
                     numbers[0] <= kMost && numbers[1] > 0 && numbers[1] <= kMost;
  const std::uint32_t channels = numbers.size() == 3 ? numbers[2] : 3;
  if (!sized || (channels != 1 && channels != 3 && channels != 4)) {
    refuse(option, text, "a height and a width, such as 224x224, and perhaps x1, x3 or x4");
  }
  // As of images that are not resized; without channels they may have four.
  constexpr std::uint64_t kMostNbytes = std::uint64_t{1} << 30;
  const std::uint64_t most_channels = numbers.size() == 3 ? channels : 4;
  if (std::uint64_t{numbers[0]} * numbers[1] * most_channels > kMostNbytes) {
    refuse(option, text, "images of at most 1 GiB");
  }
  ImageSize size{numbers[0], numbers[1], std::nullopt};
  if (numbers.size() == 3) {
    size.channels = static_cast<std::uint8_t>(channels);
  }
  return size;
}

std::string parse_number_text(std::string_view option, const std::string& text) {
  char* end = nullptr;
  std::strtod(text.c_str(), &end);
  if (text.empty() || end != text.c_str() + text.size() ||
      text.find_first_of(" \t\n(xXpP") != std::string::npos) {
    refuse(option, text, "a number");
  }
  return text;
}

std::uint64_t parse_header_align(std::string_view option, std::string_view text) {
  constexpr std::uint64_t kLeast = 64;  // numpy's own
  constexpr std::uint64_t kMost = 65536;
  const std::uint64_t nbytes = parse_nbytes(option, text);
  if (!std::has_single_bit(nbytes) || nbytes < kLeast || nbytes > kMost) {
    refuse(option, text, "a power of two from 64 to 64K");
  }
  return nbytes;
}

std::pair<std::string, Value> parse_attribute(std::string_view option, const std::string& text) {
  const auto [name, json] = parse_assignment(option, text);
  try {
    return {name, parse_json(json)};
  } catch (const Error& error) {
    const bool is_word = json.find_first_of("\"'[]{},:\\") == std::string::npos;
    throw Error(
        ErrorKind::kUsage,
        fmt::format(
            "{}: the value of '{}' is '{}', expected JSON ({}); {}", option, name, json,
            error.what(),
            is_word ? fmt::format("text needs its quotes: {} '{}=\"{}\"'", option, name, json)
                    : fmt::format("keep the shell from its quotes: {} '{}=...'", option, name)));
  }
}

std::string parse_array_name(std::string_view option, const std::string& text) {
  if (text.empty() || text.find('/') != std::string::npos || text == "." || text == ".." ||
      text.size() > 255 - std::string_view(".npy").size()) {
    refuse(option, text, "a name for an array (up to 251 bytes, without '/')");
  }
  return text;
}

std::vector<std::string> read_lines(const std::string& path) {
  // What no list of names needs, so that a path to a device or to the data itself is found out.
  constexpr std::uint64_t kMostNbytes = std::uint64_t{16} << 20;
  const auto source = open_named_file(path);
  if (source->nbytes() > kMostNbytes) {
    throw file_error(ErrorKind::kTooLarge, path,
                     fmt::format("it has {} bytes, expected a list of names of at most {}",
                                 source->nbytes(), kMostNbytes));
  }
  std::string text(source->nbytes(), '\0');
  source->read_at(0, std::as_writable_bytes(std::span(text)));
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    if (lines.back().ends_with('\r')) {
      lines.back().pop_back();
    }
    begin = end + 1;
  }
  return lines;
}

}  // namespace npyfs
