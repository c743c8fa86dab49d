// SPDX-License-Identifier: Apache-2.0

#include "formats/recordio/idx_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <limits>
#include <optional>

#include "formats/bytes/error.h"
#include "formats/bytes/fault_tally.h"
#include "formats/bytes/line_reader.h"
#include "formats/bytes/text_view.h"

namespace npyfs {

namespace {

// A longer line is no line of an index.
constexpr std::size_t kLineLimitNbytes = 1 << 16;

struct Line {
  std::string_view key;
  std::uint64_t offset = 0;
};

template <typename Integer>
std::optional<Integer> parse_integer(std::string_view text) {
  Integer value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    return std::nullopt;
  }
  return value;
}

constexpr std::string_view kBlanks = " \t";

// Key and offset; what follows them is not looked at. A key may hold blanks if a TAB ends it.
std::optional<Line> parse_line(std::string_view text) {
  const std::string_view line = strip(text, kBlanks);
  const std::size_t tab = line.find('\t');
  const std::size_t key_end = tab != std::string_view::npos ? tab : line.find(' ');
  if (line.size() > kLineLimitNbytes || key_end == std::string_view::npos) {
    return std::nullopt;
  }
  const std::string_view rest = strip(line.substr(key_end), kBlanks);
  const auto offset = parse_integer<std::uint64_t>(rest.substr(0, rest.find_first_of(kBlanks)));
  if (!offset) {
    return std::nullopt;
  }
  return Line{strip(line.substr(0, key_end), kBlanks), *offset};
}

// Reads all lines with keys of one kind. False where the keys turn out to be text.
class IdxParser {
 public:
  IdxParser(const ByteSource& source, bool permissive,
            const std::function<void(const std::string&)>& warn)
      : source_(source), permissive_(permissive), warn_(warn) {}

  bool parse(bool integer_keys, IdxFile& idx) {
    idx = {};
    idx.integer_keys = integer_keys;
    bad_ = FaultTally("lines", "left out");
    LineReader lines(source_, kLineLimitNbytes);
    std::string_view text;
    while (lines.next(text)) {
      if (strip(text, kBlanks).empty()) {
        continue;
      }
      const std::optional<Line> line = parse_line(text);
      if (!line) {
        note_bad_line(lines, text);
      } else if (!add(*line, lines.number(), idx)) {
        return false;
      }
    }
    bad_.tell(warn_);
    return true;
  }

 private:
  bool add(const Line& line, std::uint32_t number, IdxFile& idx) {
    IdxEntry entry;
    entry.offset = line.offset;
    entry.line = number;
    if (idx.integer_keys) {
      const auto key = parse_integer<std::int64_t>(line.key);
      if (!key) {
        return false;
      }
      entry.key = *key;
    } else {
      entry.key = static_cast<std::int64_t>(idx.text.size());
      entry.key_nbytes = static_cast<std::uint32_t>(line.key.size());
      idx.text += line.key;
    }
    idx.entries.push_back(entry);
    return true;
  }

  void note_bad_line(const LineReader& lines, std::string_view text) {
    if (!permissive_) {
      throw describe(lines, text);
    }
    bad_.add(describe(lines, text));
  }

  Error describe(const LineReader& lines, std::string_view text) const {
    return corrupt_at(source_.name(), lines.offset(),
                      fmt::format("line {} is \"{}\", expected a key, a TAB and an offset; write "
                                  "the index anew, or remove it to have the records found without "
                                  "it",
                                  lines.number(), printable(text.substr(0, 60))));
  }

  const ByteSource& source_;
  bool permissive_;
  const std::function<void(const std::string&)>& warn_;
  FaultTally bad_{"lines", "left out"};
};

// Keeps only the last line of entries with equal keys.
void drop_repeated_keys(const ByteSource& source, IdxFile& idx,
                        const std::function<void(const std::string&)>& warn) {
  const auto same = [&idx](const IdxEntry& a, const IdxEntry& b) {
    return idx.integer_keys ? a.key == b.key : idx.text_key(a) == idx.text_key(b);
  };
  const auto before = [&](const IdxEntry& a, const IdxEntry& b) {
    if (same(a, b)) {
      return a.line > b.line;
    }
    return idx.integer_keys ? a.key < b.key : idx.text_key(a) < idx.text_key(b);
  };
  std::vector<IdxEntry>& entries = idx.entries;
  if (!std::is_sorted(entries.begin(), entries.end(), before)) {
    std::sort(entries.begin(), entries.end(), before);
  }
  const auto first = std::adjacent_find(entries.begin(), entries.end(), same);
  if (first == entries.end()) {
    return;
  }
  const std::uint32_t lines[] = {first[1].line, first[0].line};
  const std::uint64_t listed = entries.size();
  entries.erase(std::unique(entries.begin(), entries.end(), same), entries.end());
  warn(
      fmt::format("{}: the key of line {} stands again in line {}; of equal keys the last one "
                  "counts, {} lines are left out",
                  printable(source.name()), lines[0], lines[1], listed - entries.size()));
}

}  // namespace

IdxFile read_idx(const ByteSource& source, bool permissive,
                 const std::function<void(const std::string&)>& warn) {
  IdxFile idx;
  IdxParser parser(source, permissive, warn);
  if (!parser.parse(true, idx)) {
    parser.parse(false, idx);
  }
  drop_repeated_keys(source, idx, warn);
  const auto before = [](const IdxEntry& a, const IdxEntry& b) {
    return a.offset != b.offset ? a.offset < b.offset : a.line < b.line;
  };
  std::sort(idx.entries.begin(), idx.entries.end(), before);
  return idx;
}

std::string idx_path(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const std::size_t name = slash == std::string::npos ? 0 : slash + 1;
  const std::size_t visible = path.find_first_not_of('.', name);
  const std::size_t dot = path.rfind('.');
  const bool has_extension =
      dot != std::string::npos && visible != std::string::npos && dot > visible;
  return (has_extension ? path.substr(0, dot) : path) + ".idx";
}

}  // namespace npyfs
