// SPDX-License-Identifier: Apache-2.0

#include "formats/wenet/list_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <span>
#include <string>

#include "formats/bytes/line_reader.h"
#include "formats/bytes/text_view.h"
#include "formats/bytes/value.h"

namespace npyfs {

namespace {

constexpr std::size_t kMostLineNbytes = std::size_t{1} << 20;
constexpr std::size_t kHeadNbytes = 4096;
constexpr std::size_t kMostPathNbytes = 4096;  // as Linux has it

constexpr std::string_view kBlanks = " \t\r\v\f";

// "http" of "http://host/a.tar"; empty for paths (RFC 3986, 3.1).
std::string_view scheme_of(std::string_view path) {
  const std::size_t colon = path.find(':');
  if (colon == std::string_view::npos || colon == 0 ||
      std::isalpha(static_cast<unsigned char>(path.front())) == 0) {
    return {};
  }
  const std::string_view scheme = path.substr(0, colon);
  const bool legal = std::all_of(scheme.begin(), scheme.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '+' || c == '-' || c == '.';
  });
  return legal ? scheme : std::string_view();
}

// What follows the blanks: a page, or as much as a JSON line may have.
struct Head {
  std::string text;
  bool is_all = false;  // of the source
};

Head read_head(const ByteSource& source) {
  for (const std::size_t most : {kHeadNbytes, kMostLineNbytes + 1}) {
    std::string head(std::min<std::uint64_t>(source.nbytes(), most), '\0');
    source.read_at(0, std::as_writable_bytes(std::span(head)));
    const std::size_t begin = head.find_first_not_of(" \t\r\v\f\n");
    const bool is_all = head.size() == source.nbytes();
    if (begin != std::string::npos && (is_all || most > kHeadNbytes || head[begin] != '{')) {
      return {head.substr(begin), is_all};
    }
  }
  return {};
}

// The first line that is not blank, if it ends within the head.
std::optional<std::string> first_line(const ByteSource& source) {
  const Head head = read_head(source);
  const std::size_t end = head.text.find('\n');
  if (head.text.empty() || (end == std::string::npos && !head.is_all)) {
    return std::nullopt;
  }
  return std::string(strip(std::string_view(head.text).substr(0, end), kBlanks));
}

// Lines may be long, messages not.
std::string brief(std::string_view text) {
  constexpr std::size_t kMostShown = 200;
  return text.size() <= kMostShown ? printable(text)
                                   : printable(text.substr(0, kMostShown)) + "...";
}

bool names_shard(std::string_view line) {
  constexpr std::array<std::string_view, 11> kEndings = {
      ".tar", ".tgz",  ".tar.gz", ".tar.zst", ".tar.xz", ".tar.bz2",
      ".txz", ".tbz2", ".tzst",   ".tar.lz4", ".tlz4"};
  return line.find_first_of(" \t") == std::string_view::npos &&
         std::any_of(kEndings.begin(), kEndings.end(),
                     [&](std::string_view ending) { return line.ends_with(ending); });
}

bool is_utterance(const std::string& line) {
  try {
    const Value value = parse_json(line);
    const Dict* dict = std::get_if<Dict>(&value.v);
    return dict != nullptr && std::any_of(dict->begin(), dict->end(), [](const DictEntry& entry) {
             return entry.name == "wav";
           });
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

void for_each_line(const ByteSource& list, const std::function<void(const ListLine&)>& take) {
  LineReader lines(list, kMostLineNbytes);
  std::string_view text;
  while (lines.next(text)) {
    if (text.size() > kMostLineNbytes) {
      throw corrupt_at(list.name(), lines.offset(),
                       fmt::format("line {} is longer than {} bytes, expected a path or a JSON "
                                   "object",
                                   lines.number(), kMostLineNbytes));
    }
    if (const std::string_view stripped = strip(text, kBlanks); !stripped.empty()) {
      take({stripped, lines.number()});
    }
  }
}

Error list_error(const ByteSource& list, std::uint32_t line, std::string_view text,
                 ErrorKind kind) {
  return file_error(kind, fmt::format("{} line {}", list.name(), line), text);
}

std::string local_path(const ByteSource& list, const ListLine& line, std::string_view path) {
  const std::string_view scheme = scheme_of(path);
  if (!scheme.empty() && scheme != "file") {
    throw list_error(list, line.number,
                     fmt::format("'{}' is remote or a command ({}:), expected the path of a file; "
                                 "copy the files here and name these",
                                 brief(path), scheme),
                     ErrorKind::kUnsupported);
  }
  if (path.size() > kMostPathNbytes) {
    throw list_error(list, line.number,
                     fmt::format("'{}' has {} bytes, expected the path of a file, {} at most",
                                 brief(path), path.size(), kMostPathNbytes));
  }
  path.remove_prefix(path.starts_with("file://") ? std::string_view("file://").size() : 0);
  return std::string(path);
}

Error line_error(const ByteSource& list, std::uint32_t line, const Error& error) {
  return error.wrapped(fmt::format("{} line {}: ", printable(list.name()), line), "");
}

bool looks_like_list(const ByteSource& source) {
  const auto line = first_line(source);
  return line && (line->starts_with('{') ? is_utterance(*line) : names_shard(*line));
}

bool is_raw_list(const ByteSource& list) { return read_head(list).text.starts_with('{'); }

}  // namespace npyfs
