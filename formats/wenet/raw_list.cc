// SPDX-License-Identifier: Apache-2.0
//
// [wenet-e2e/wenet:wenet/dataset/processor.py]

#include "formats/wenet/raw_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "formats/bytes/extent_column.h"
#include "formats/bytes/string_list.h"
#include "formats/bytes/value.h"
#include "formats/named_files.h"
#include "formats/payloads/wav_pieces.h"
#include "formats/wenet/list_lines.h"

namespace npyfs {

namespace {

struct Cut {
  double start = 0;  // seconds
  double end = 0;
};

struct Utterance {
  std::string key;
  std::string wav;
  std::string text;
  std::optional<Cut> cut;
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
    utterance.cut = Cut{*from, *to};
  }
  return utterance;
}

// What of a wave a line means: frames are cut off, not rounded.
std::uint64_t frame_at(double seconds, std::uint32_t rate_hz) {
  constexpr double kMost = 1e18;
  return static_cast<std::uint64_t>(std::min(seconds * rate_hz, kMost));
}

// What the list says, and where the bytes are.
struct RawIndex {
  StringList keys;
  std::vector<SourcePtr> files;      // of each record
  std::shared_ptr<WavPieces> waves;  // null: no record is cut
  std::vector<bool> is_cut;
  SourcePtr texts;  // in memory, one behind the other
  ExtentColumn text_places;
};

// Whole files; of a cut record the samples.
class AudioColumn : public ByteColumn {
 public:
  explicit AudioColumn(std::shared_ptr<const RawIndex> index) : index_(std::move(index)) {}

  std::uint64_t size() const override { return index_->files.size(); }
  bool locate(std::uint64_t record, std::vector<Extent>& out) const override {
    const ByteSource& file = *index_->files[record];
    if (index_->is_cut[record]) {
      const WavPiece& piece = index_->waves->pieces[record];
      out.assign(1, {piece.source, piece.offset, piece.stored_nbytes()});
    } else {
      out.assign(1, {&file, 0, file.nbytes()});
    }
    return true;
  }
  const Damage* damage(std::uint64_t record) const override {
    return index_->waves != nullptr && index_->is_cut[record] ? index_->waves->damage.find(record)
                                                              : nullptr;
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
  RawTable(std::shared_ptr<const RawIndex> index, std::string extension,
           std::vector<SourcePtr> sources)
      : index_(std::move(index)), sources_(std::move(sources)) {
    const auto audio = std::make_shared<AudioColumn>(index_);
    const auto text = std::make_shared<TextColumn>(index_);
    const bool any_cut =
        std::find(index_->is_cut.begin(), index_->is_cut.end(), true) != index_->is_cut.end();
    Field wav;
    wav.name = "x";
    wav.extension = any_cut ? "" : extension;
    wav.bytes = audio;
    wav.time_series = true;
    if (index_->waves != nullptr) {
      wav.typed = make_wav_column(index_->waves);
    }
    fields_.push_back(std::move(wav));
    Field txt;
    txt.name = txt.extension = "txt";
    txt.bytes = text;
    fields_.push_back(std::move(txt));
    // Of samples without a header nothing tells what they are.
    stored_.push_back({any_cut ? "" : extension, audio});
    stored_.push_back({"txt", text});
  }

  std::uint64_t size() const override { return index_->keys.size(); }
  const std::vector<Field>& fields() const override { return fields_; }
  const std::vector<StoredUnit>& stored() const override { return stored_; }
  std::vector<SourcePtr> sources() const override { return sources_; }
  KeyKind key_kind() const override { return KeyKind::kText; }
  std::string_view text_key(std::uint64_t record) const override { return index_->keys[record]; }
  const Damage* damage(std::uint64_t record) const override {
    return index_->waves != nullptr ? index_->waves->damage.find(record) : nullptr;
  }
  std::uint64_t damaged_count() const override {
    return index_->waves != nullptr ? index_->waves->damage.size() : 0;
  }

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
    if (first_cut_ != 0) {
      cut_waves();
    }
    say_findings();
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
    return std::make_shared<RawTable>(std::move(index_), extension_, std::move(sources));
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
    index_->is_cut.push_back(utterance.cut.has_value());
    lines_.push_back(line.number);
    cuts_.push_back(utterance.cut.value_or(Cut{}));
    index_->text_places.append(text_.size(), utterance.text.size());
    text_ += utterance.text;
    first_cut_ = first_cut_ == 0 && utterance.cut ? line.number : first_cut_;
    note_extension(utterance.wav);
  }

  // Null where the line is left out.
  const SourcePtr* open(const ListLine& line, const Utterance& utterance) {
    const std::string path = local_path(*list_, line, utterance.wav);
    try {
      return &files_.source(files_.find(path));
    } catch (const Error& error) {
      const Error placed = unopened_error(*list_, line.number, error);
      if (!context_.permissive || error.to_errno() == EMFILE) {
        throw placed;
      }
      if (++unopened_ == 1) {
        first_unopened_ = placed.what();
      }
      return nullptr;
    }
  }

  void note_extension(std::string_view path) {
    const std::size_t dot = path.rfind('.');
    const std::string_view extension =
        dot == std::string_view::npos ? std::string_view() : path.substr(dot + 1);
    if (index_->keys.size() == 1) {
      extension_ = extension;
    } else if (extension_ != extension) {
      extension_.clear();
    }
  }

  // Headers are read only where a piece depends on them: whole files are understood like any
  // payload.
  void cut_waves() {
    auto waves = std::make_shared<WavPieces>();
    std::optional<Error> first_fault;
    for (std::uint64_t record = 0; record < index_->files.size(); ++record) {
      WavPiece piece;
      try {
        piece = cut_wave(record);
      } catch (const Error& error) {
        if (error.kind() != ErrorKind::kCorrupt && error.kind() != ErrorKind::kUnsupported) {
          throw;
        }
        const Error placed = list_error(*list_, lines_[record], error.what(), error.kind());
        first_fault = first_fault ? first_fault : std::optional(placed);
        waves->damage.add(record, [&] { return Damage{placed, std::nullopt}; });
      }
      waves->pieces.push_back(piece);
    }
    if (first_fault && first_fault->kind() == ErrorKind::kUnsupported &&
        waves->damage.size() == index_->files.size()) {
      throw Error(*first_fault);
    }
    waves->damage.shrink();
    if (!rates_differ_) {
      waves->rate_hz = rate_hz_;
    }
    index_->waves = std::move(waves);
  }

  WavPiece cut_wave(std::uint64_t record) {
    const ByteSource& file = *index_->files[record];
    if (&file != header_of_) {
      header_of_ = nullptr;
      header_ = read_header(file);
      header_of_ = &file;
      note_header();
    }
    if (!index_->is_cut[record]) {
      if (header_.truncated) {
        throw file_error(ErrorKind::kCorrupt, file.name(),
                         "the wave is cut short, expected as many samples as its header says");
      }
      return cut_wav(file, header_, 0, header_.frames);
    }
    if (header_.truncated && truncated_of_ != &file && ++truncated_ == 1) {
      first_truncated_ = file.name();
    }
    truncated_of_ = header_.truncated ? &file : truncated_of_;
    const std::uint64_t start = frame_at(cuts_[record].start, header_.rate_hz);
    if (start > header_.frames && ++behind_ == 1) {
      first_behind_ = lines_[record];
    }
    return cut_wav(file, header_, start, frame_at(cuts_[record].end, header_.rate_hz));
  }

  WavHeader read_header(const ByteSource& file) const {
    std::byte head[12] = {};
    const std::size_t n = std::min<std::uint64_t>(sizeof head, file.nbytes());
    file.read_at(0, std::span(head).first(n));
    if (!is_wav(std::span<const std::byte>(head).first(n)) && !file.name().ends_with(".wav")) {
      throw file_error(ErrorKind::kUnsupported, file.name(),
                       "the file is no WAV, expected one in a list with 'start' and 'end'; "
                       "convert it, or give it a list of its own");
    }
    WindowReader window(file);
    return parse_wav(file, window, 0, file.nbytes());
  }

  void note_header() {
    rates_differ_ = rates_differ_ || (rate_hz_ && *rate_hz_ != header_.rate_hz);
    rate_hz_ = header_.rate_hz;
  }

  void say_findings() const {
    if (unopened_ > 0) {
      context_.warn(fmt::format(
          "{}; left out{}", first_unopened_,
          unopened_ > 1 ? fmt::format(" (and {} more lines)", unopened_ - 1) : std::string()));
    }
    if (behind_ > 0) {
      context_.warn(
          list_error(*list_, first_behind_,
                     fmt::format("'start' is behind the end of the wave, expected within; such a "
                                 "piece is empty{}",
                                 behind_ > 1 ? fmt::format(" (and {} more lines)", behind_ - 1)
                                             : std::string()))
              .what());
    }
    if (truncated_ > 0) {
      context_.warn(
          file_error(ErrorKind::kCorrupt, first_truncated_,
                     fmt::format("the wave is cut short, expected as many samples as its header "
                                 "says; what is there is shown{}",
                                 truncated_ > 1 ? fmt::format(" (and {} more)", truncated_ - 1)
                                                : std::string()))
              .what());
    }
  }

  SourcePtr list_;
  OpenContext& context_;
  NamedFiles files_;
  std::shared_ptr<RawIndex> index_;
  std::string text_;
  std::string extension_;        // of all files, or empty
  std::uint32_t first_cut_ = 0;  // line
  std::vector<Cut> cuts_;        // of each record
  std::vector<std::uint32_t> lines_;
  // Of the file of the line before: many lines cut pieces of one.
  const ByteSource* header_of_ = nullptr;
  WavHeader header_;
  std::optional<std::uint32_t> rate_hz_;
  bool rates_differ_ = false;
  std::uint64_t unopened_ = 0;
  std::string first_unopened_;
  std::uint64_t truncated_ = 0;
  std::string first_truncated_;
  const ByteSource* truncated_of_ = nullptr;  // counted last
  std::uint64_t behind_ = 0;                  // pieces that begin behind the end of their file
  std::uint32_t first_behind_ = 0;            // line
};

}  // namespace

std::shared_ptr<const RecordTable> open_raw_list(const SourcePtr& list, const std::string& folder,
                                                 OpenContext& context) {
  return RawReader(list, folder, context).run();
}

}  // namespace npyfs
