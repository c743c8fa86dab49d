// SPDX-License-Identifier: Apache-2.0
//
// [wenet-e2e/wenet:wenet/dataset/processor.py]

#include "formats/wenet/raw_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "formats/bytes/descriptor_pool.h"
#include "formats/bytes/extent_column.h"
#include "formats/bytes/fault_tally.h"
#include "formats/bytes/string_list.h"
#include "formats/bytes/value.h"
#include "formats/named_files.h"
#include "formats/payloads/payload_table.h"
#include "formats/wenet/list_lines.h"

namespace npyfs {

namespace {

struct Utterance {
  std::string key;
  std::string wav;
  std::string text;
  std::optional<AudioCut> cut;
};

const Value* find_entry(const Dict& dict, std::string_view name) {
  const auto at = std::find_if(dict.begin(), dict.end(),
                               [&](const DictEntry& entry) { return entry.name == name; });
  return at == dict.end() ? nullptr : &at->value;
}

std::optional<double> as_seconds(const Value& value) {
  std::optional<double> seconds;
  if (const auto* number = std::get_if<double>(&value.v)) {
    seconds = *number;
  } else if (const auto* integer = std::get_if<std::int64_t>(&value.v)) {
    seconds = static_cast<double>(*integer);
  }
  return seconds && std::isfinite(*seconds) && *seconds >= 0 ? seconds : std::nullopt;
}

Utterance parse_line(const ByteSource& list, const ListLine& line) {
  const auto fault = [&](const std::string& text) {
    return list_error(list, line.number,
                      text + R"(, expected {"key": ..., "wav": ..., "txt": ...})");
  };
  Value value;
  try {
    value = parse_json(line.text);
  } catch (const Error& error) {
    throw fault(fmt::format("the line is no JSON ({})", error.what()));
  }
  const Dict* dict = std::get_if<Dict>(&value.v);
  if (dict == nullptr) {
    throw fault("the line is no JSON object");
  }
  const auto text_of = [&](const char* name, bool needed) -> std::string {
    const Value* entry = find_entry(*dict, name);
    const auto* text = entry != nullptr ? std::get_if<std::string>(&entry->v) : nullptr;
    if (text == nullptr && (needed || entry != nullptr)) {
      throw fault(fmt::format("'{}' is {}", name, entry == nullptr ? "missing" : "no text"));
    }
    return text != nullptr ? *text : std::string();
  };
  Utterance utterance{text_of("key", true), text_of("wav", true), text_of("txt", false), {}};
  const Value* start = find_entry(*dict, "start");
  const Value* end = find_entry(*dict, "end");
  if ((start == nullptr) != (end == nullptr)) {
    throw fault("one of 'start' and 'end' is missing");
  }
  if (start != nullptr) {
    const auto from = as_seconds(*start);
    const auto to = as_seconds(*end);
    if (!from || !to || *to < *from) {
      throw list_error(list, line.number,
                       "'start' and 'end' are no piece of a wave, expected seconds, 0 <= start <= "
                       "end");
    }
    utterance.cut = AudioCut{*from, *to};
  }
  return utterance;
}

// What the list says, and where the bytes are.
struct RawIndex {
  StringList keys;
  std::vector<SourcePtr> files;  // of each record
  SourcePtr texts;               // in memory, one after another
  ExtentColumn text_places;
};

// What is needed of the lines until the audio has been looked at.
struct RawLines {
  std::vector<std::uint32_t> numbers;
  std::vector<std::optional<AudioCut>> cuts;
  bool any_cut = false;
  std::string extension;  // of all files, or empty
  bool all_audio = true;  // by their extensions
};

class FileColumn : public ByteColumn {
 public:
  explicit FileColumn(std::shared_ptr<const RawIndex> index) : index_(std::move(index)) {}

  std::uint64_t size() const override { return index_->files.size(); }
  bool locate(std::uint64_t record, std::vector<Extent>& out) const override {
    const ByteSource& file = *index_->files[record];
    out.assign(1, {&file, 0, file.nbytes()});
    return true;
  }

 private:
  std::shared_ptr<const RawIndex> index_;
};

class TextColumn : public ByteColumn {
 public:
  explicit TextColumn(std::shared_ptr<const RawIndex> index) : index_(std::move(index)) {}

  std::uint64_t size() const override { return index_->text_places.size(); }
  bool locate(std::uint64_t record, std::vector<Extent>& out) const override {
    const auto place = index_->text_places[record];
    out.assign(1, {index_->texts.get(), place.offset, place.nbytes});
    return true;
  }

 private:
  std::shared_ptr<const RawIndex> index_;
};

class RawTable : public RecordTable {
 public:
  RawTable(std::shared_ptr<const RawIndex> index, std::vector<SourcePtr> sources)
      : index_(std::move(index)), sources_(std::move(sources)) {}

  // To be called once. Payloads of a list without pieces are understood like any.
  void set_fields(const RawLines& lines,
                  const std::function<void(std::uint64_t, CutFinding)>& report) {
    Field wav;
    wav.name = "x";
    wav.time_series = true;
    wav.bytes = std::make_shared<FileColumn>(index_);
    if (lines.any_cut) {
      const AudioPieces pieces =
          make_audio_pieces({.bytes = wav.bytes,
                             .table = *this,
                             .verifier = strict_verifier(),  // files have no checksums
                             .named = true},
                            {[&](std::uint64_t record) { return lines.cuts[record]; }, report});
      wav.typed = pieces.column;
      wav.bytes = pieces.stored;
    } else {
      // Where extensions differ, any of audio tells what all files are.
      wav.extension = lines.extension.empty() && lines.all_audio ? "wav" : lines.extension;
    }
    Field txt;
    txt.name = txt.extension = "txt";
    txt.bytes = std::make_shared<TextColumn>(index_);
    stored_ = {{lines.any_cut ? "" : lines.extension, wav.bytes}, {txt.extension, txt.bytes}};
    fields_ = {std::move(wav), std::move(txt)};
  }

  std::uint64_t size() const override { return index_->keys.size(); }
  const std::vector<Field>& fields() const override { return fields_; }
  const std::vector<StoredUnit>& stored() const override { return stored_; }
  std::vector<SourcePtr> sources() const override { return sources_; }
  KeyKind key_kind() const override { return KeyKind::kText; }
  std::string_view text_key(std::uint64_t record) const override { return index_->keys[record]; }

 private:
  std::shared_ptr<const RawIndex> index_;
  std::vector<SourcePtr> sources_;
  std::vector<Field> fields_;
  std::vector<StoredUnit> stored_;
};

// Reads a list and looks at the header of each of its files. One use.
class RawReader {
 public:
  RawReader(const SourcePtr& list, const std::string& folder, OpenContext& context)
      : list_(list),
        context_(context),
        files_(folder, context),
        index_(std::make_shared<RawIndex>()) {}

  std::shared_ptr<const RecordTable> run() {
    for_each_line(*list_, [&](const ListLine& line) { take(line); });
    unopened_.tell(context_.warn);
    index_->keys.shrink();
    index_->text_places.shrink();
    const auto text = std::as_bytes(std::span(text_));
    index_->texts = std::make_shared<MemorySource>(
        list_->name(), std::vector<std::byte>(text.begin(), text.end()));
    std::vector<SourcePtr> sources = {list_};
    for (std::uint32_t file = 0; file < files_.size(); ++file) {
      if (files_.opened(file) != nullptr) {
        sources.push_back(files_.opened(file));
      }
    }
    const auto table = std::make_shared<RawTable>(index_, std::move(sources));
    table->set_fields(lines_,
                      [&](std::uint64_t record, CutFinding finding) { report(record, finding); });
    findings_.tell(context_.warn);
    require_any(*table);
    return table;
  }

 private:
  void take(const ListLine& line) {
    const Utterance utterance = parse_line(*list_, line);
    const SourcePtr* file = open(line, utterance);
    if (file == nullptr) {
      return;
    }
    index_->keys.append(utterance.key);
    index_->files.push_back(*file);
    lines_.numbers.push_back(line.number);
    lines_.cuts.push_back(utterance.cut);
    lines_.any_cut = lines_.any_cut || utterance.cut.has_value();
    index_->text_places.append(text_.size(), utterance.text.size());
    text_ += utterance.text;
    note_extension(utterance.wav);
  }

  // Null where the line is left out.
  const SourcePtr* open(const ListLine& line, const Utterance& utterance) {
    const std::string path = local_path(*list_, line, utterance.wav);
    try {
      return &files_.source(files_.find(path));
    } catch (const Error& error) {
      const Error placed = line_error(*list_, line.number, error);
      if (!context_.permissive || is_want_of_descriptors(error.to_errno())) {
        throw placed;
      }
      unopened_.add(placed);
      return nullptr;
    }
  }

  void note_extension(std::string_view path) {
    const std::size_t dot = path.rfind('.');
    const std::string_view extension =
        dot == std::string_view::npos ? std::string_view() : path.substr(dot + 1);
    const Payload* payload = payload_of_extension(extension);
    lines_.all_audio = lines_.all_audio && payload != nullptr && payload->make == make_audio_column;
    if (index_->keys.size() == 1) {
      lines_.extension = extension;
    } else if (lines_.extension != extension) {
      lines_.extension.clear();
    }
  }

  void report(std::uint64_t record, CutFinding finding) {
    if (finding == CutFinding::kBeginsBehindEnd) {
      findings_.add(list_error(*list_, lines_.numbers[record],
                               "'start' is behind the end of the wave, expected within; such a "
                               "piece is empty"));
    } else {
      findings_.add(line_error(
          *list_, lines_.numbers[record],
          file_error(ErrorKind::kCorrupt, index_->files[record]->name(),
                     "the wave is cut short, expected as many samples as its header says; what is "
                     "there is shown")));
    }
  }

  // Pieces of which none can be read are no data set.
  void require_any(const RecordTable& table) const {
    if (!lines_.any_cut) {
      return;
    }
    Item first;
    for (std::uint64_t record = 0; record < table.size(); ++record) {
      Item item;
      table.fields()[0].typed->inspect(record, item);
      if (item.damage == nullptr) {
        return;
      }
      first = record == 0 ? item : first;
    }
    throw line_error(*list_, lines_.numbers.front(), first.damage->error);
  }

  SourcePtr list_;
  OpenContext& context_;
  NamedFiles files_;
  std::shared_ptr<RawIndex> index_;
  RawLines lines_;
  std::string text_;
  FaultTally unopened_{"lines", "left out"};
  FaultTally findings_{"lines"};
};

}  // namespace

std::shared_ptr<const RecordTable> open_raw_list(const SourcePtr& list, const std::string& folder,
                                                 OpenContext& context) {
  return RawReader(list, folder, context).run();
}

}  // namespace npyfs
