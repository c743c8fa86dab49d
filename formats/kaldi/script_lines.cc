// SPDX-License-Identifier: Apache-2.0

#include "formats/kaldi/script_lines.h"

#include <fmt/format.h>

#include "formats/bytes/line_reader.h"
#include "formats/bytes/words.h"
#include "formats/kaldi/location.h"
#include "formats/kaldi/specifier.h"

namespace npyfs {

namespace {

constexpr std::size_t kMostScriptLineNbytes = 1 << 20;
constexpr std::size_t kMostShownNbytes = 200;

class LineParser {
 public:
  LineParser(const ByteSource& script, const OpenContext& context, NamedFiles& files,
             RefusedLines& refused)
      : script_(script), context_(context), files_(files), refused_(refused) {}

  ScriptLines parse() {
    LineReader reader(script_, kMostScriptLineNbytes);
    for (std::string_view line; reader.next(line);) {
      if (reader.number() == 1 && line.starts_with('\0')) {
        throw corrupt_at(script_.name(), 0,
                         "the first byte is 0, expected a key; this is an archive or an object");
      }
      parse_line(line, reader.number());
    }
    return std::move(lines_);
  }

 private:
  void parse_line(std::string_view line, std::uint32_t number) {
    if (line.size() > kMostScriptLineNbytes) {
      throw line_error(script_, number,
                       "the line is longer than 1 MiB, expected a key and a place; this is no "
                       "script");
    }
    Place place;
    place.line = number;
    std::size_t at = 0;
    const std::string_view key = next_word(line, at);
    const std::size_t begin = line.find_first_not_of(kBlanks, at);
    if (line.find('\0') != std::string_view::npos) {
      refused_.add(place, "the line holds a zero byte, expected a key and a place");
    } else if (key.empty()) {
      refused_.add(place, "the line is blank, expected a key and a place");
    } else if (begin == std::string_view::npos) {
      refused_.add(place, fmt::format("key '{}' has no place, expected a file behind it",
                                      printable(key.substr(0, kMostShownNbytes))));
    } else {
      const std::size_t end = line.find_last_not_of(kBlanks) + 1;
      take_location(line.substr(begin, end - begin), key, place);
    }
    lines_.keys.append(key);
    lines_.places.push_back(place);
  }

  void take_location(std::string_view text, std::string_view key, Place& place) {
    const ScriptLocation location = parse_location(text);
    const auto shown = [&] {
      return fmt::format("the place of key '{}', '{}',", printable(key.substr(0, kMostShownNbytes)),
                         printable(text.substr(0, kMostShownNbytes)));
    };
    if (location.range) {
      place.range = static_cast<std::uint32_t>(lines_.ranges.size());
      lines_.ranges.append(*location.range);
    }
    if (location.kind == ScriptLocation::Kind::kRefused) {
      refused_.add(place, fmt::format("{} {}", shown(), location.refusal));
    } else if (location.kind == ScriptLocation::Kind::kFile) {
      place.file = files_.find(location.path);
      place.whole_file = !location.offset;
      place.offset = location.offset.value_or(0);
    } else if (!context_.has(kAllowPipes)) {
      refused_.add(place, fmt::format("{} is a command, expected a file; --allow-pipes runs "
                                      "commands",
                                      shown()));
    } else {
      // Lines behind each other may name parts of one output.
      StringList& commands = lines_.commands;
      if (commands.size() == 0 || commands[commands.size() - 1] != location.path) {
        commands.append(location.path);
      }
      place.offset = commands.size() - 1;
    }
  }

  const ByteSource& script_;
  const OpenContext& context_;
  NamedFiles& files_;
  RefusedLines& refused_;
  ScriptLines lines_;
};

}  // namespace

Error line_error(const ByteSource& file, std::uint32_t line, std::string_view text) {
  return file_error(ErrorKind::kCorrupt, fmt::format("{} line {}", file.name(), line), text);
}

void RefusedLines::add(Place& place, std::string_view said, std::string_view text) {
  place.refused = true;
  tally_.add(said, line_error(script_, place.line, text).what(), place.line);
}

void RefusedLines::report() const {
  if (empty()) {
    return;
  }
  if (!context_.permissive) {
    throw Error(ErrorKind::kCorrupt, tally_.summary() + "; --permissive leaves such records out");
  }
  tally_.tell(context_.warn);
}

ScriptLines read_script_lines(const ByteSource& script, const OpenContext& context,
                              NamedFiles& files, RefusedLines& refused) {
  return LineParser(script, context, files, refused).parse();
}

}  // namespace npyfs
