// SPDX-License-Identifier: Apache-2.0

#include "formats/kaldi/scp.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <numeric>

#include "formats/bytes/line_reader.h"
#include "formats/named_files.h"
#include "formats/kaldi/location.h"
#include "formats/kaldi/pipe.h"

namespace npyfs {

namespace {

constexpr std::size_t kMostLineNbytes = 1 << 20;
constexpr std::uint32_t kNone = 0xFFFFFFFF;

// Where one record's object lies; 24 bytes.
struct Place {
  std::uint64_t offset = 0;
  std::uint32_t file = kNone;  // of the files, or kNone: of the commands, `offset`
  std::uint32_t line = 0;
  std::uint32_t range = kNone;  // of the ranges
  bool whole_file = false;
  bool bad = false;
};

class ScpReader {
 public:
  ScpReader(const SourcePtr& script, const std::string& folder, Wanted wanted, OpenContext& context)
      : script_(script),
        context_(context),
        files_(folder, context),
        objects_(std::move(wanted), script->name(), context) {}

  ObjectIndex read() {
    parse_lines();
    read_objects();
    collect_sources();
    if (bad_count_ > 0 && !context_.permissive) {
      refuse_or_leave_out();
    }
    objects_.settle(index_);
    apply_ranges();
    refuse_or_leave_out();
    number_sources();
    for (const auto& [record, damage] : damaged_) {
      index_.damage.add(record, [&] { return damage; });
    }
    index_.keys.shrink();
    return std::move(index_);
  }

 private:
  void parse_lines() {
    LineReader lines(*script_, kMostLineNbytes);
    for (std::string_view line; lines.next(line);) {
      if (lines.number() == 1 && line.starts_with('\0')) {
        throw corrupt_at(script_->name(), 0,
                         "the first byte is 0, expected a key; this is an archive or an object");
      }
      parse_line(line, lines.number());
    }
    index_.objects.resize(places_.size());
  }

  void parse_line(std::string_view line, std::uint32_t number) {
    const std::size_t begin = line.find_first_not_of(kBlanks);
    if (line.find('\0') != std::string_view::npos || line.size() > kMostLineNbytes) {
      throw place_error(number,
                        "the line holds a zero byte or is longer than 1 MiB, expected a key "
                        "and a place; this is no script");
    }
    const std::size_t key_end =
        begin == std::string_view::npos ? begin : line.find_first_of(kBlanks, begin);
    Place place;
    place.line = number;
    const std::size_t at =
        key_end == std::string_view::npos ? key_end : line.find_first_not_of(kBlanks, key_end);
    const std::string_view key =
        begin == std::string_view::npos ? "" : line.substr(begin, key_end - begin);
    if (at == std::string_view::npos) {
      note_bad(place, begin == std::string_view::npos
                          ? std::string("the line is blank, expected a key and a place")
                          : fmt::format("key '{}' has no place, expected a file behind it",
                                        printable(key)));
    } else {
      const std::size_t end = line.find_last_not_of(kBlanks) + 1;
      take_location(line.substr(at, end - at), key, place);
    }
    index_.keys.append(key);
    places_.push_back(place);
  }

  void take_location(std::string_view text, std::string_view key, Place& place) {
    const ScriptLocation location = parse_location(text);
    const auto shown = [&] {
      return fmt::format("the place of key '{}', '{}',", printable(key),
                         printable(text.substr(0, 200)));
    };
    if (location.range) {
      place.range = static_cast<std::uint32_t>(ranges_.size());
      ranges_.append(*location.range);
    }
    if (location.kind == ScriptLocation::Kind::kRefused) {
      note_bad(place, fmt::format("{} {}", shown(), location.refusal));
    } else if (location.kind == ScriptLocation::Kind::kFile) {
      place.file = files_.find(location.path);
      place.whole_file = !location.offset;
      place.offset = location.offset.value_or(0);
    } else if (!context_.allow_pipes) {
      note_bad(place, fmt::format("{} is a command, expected a file; --allow-pipes runs commands",
                                  shown()));
    } else {
      place.offset = commands_.size();
      commands_.append(location.path);
    }
  }

  // Headers are read in the order in which they lie in the files.
  void read_objects() {
    std::vector<std::uint64_t> order(places_.size());
    std::iota(order.begin(), order.end(), std::uint64_t{0});
    const auto before = [&](std::uint64_t a, std::uint64_t b) {
      return places_[a].file != places_[b].file ? places_[a].file < places_[b].file
                                                : places_[a].offset < places_[b].offset;
    };
    if (!std::is_sorted(order.begin(), order.end(), before)) {
      std::stable_sort(order.begin(), order.end(), before);
    }
    const Place* last = nullptr;
    std::uint64_t last_record = 0;
    for (const std::uint64_t record : order) {
      Place& place = places_[record];
      if (place.bad) {
        continue;
      }
      if (last != nullptr && place.file != kNone && last->file == place.file &&
          last->offset == place.offset && last->whole_file == place.whole_file &&
          damaged_.count(last_record) == 0) {
        index_.objects[record] = index_.objects[last_record];
        continue;
      }
      read_object(record, place);
      last = place.bad ? nullptr : &place;
      last_record = record;
    }
  }

  void read_object(std::uint64_t record, Place& place) {
    Object object;
    std::uint64_t source_nbytes = 0;
    try {
      Cursor& cursor = cursor_of(place);
      source_nbytes = cursor.source().nbytes();
      require_within(place, source_nbytes);
      cursor.seek(place.file == kNone ? 0 : place.offset);
      objects_.read(cursor, place.whole_file || place.file == kNone, object);
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::kChanged || error.to_errno() == EMFILE) {
        throw;
      }
      judge(record, place, object, source_nbytes, error);
    }
    object.source = current_source_;
    index_.objects[record] = object;
  }

  void require_within(const Place& place, std::uint64_t nbytes) const {
    if (place.file != kNone && place.offset >= nbytes && nbytes + place.offset > 0) {
      throw corrupt_at(current_->source().name(), place.offset,
                       fmt::format("the object's offset is {}, expected one below the file's size "
                                   "{}",
                                   place.offset, nbytes));
    }
  }

  // One record's damage if the place is right and what is there is wrong; else the line is bad.
  void judge(std::uint64_t record, Place& place, const Object& object, std::uint64_t source_nbytes,
             const Error& error) {
    const bool of_content =
        error.kind() == ErrorKind::kCorrupt || error.kind() == ErrorKind::kUnsupported;
    const bool wave = object.kind == ObjectKind::kWave;
    const bool command = place.file == kNone;
    if (!of_content || !(wave || command || object.header_nbytes > 0)) {
      note_bad(place, error.what());
      return;
    }
    Damage damage{Error(error.kind(), place_error(place.line, error.what()).what()), std::nullopt};
    const std::uint64_t element = object.kind == ObjectKind::kDoubleMatrix ? 8 : 4;
    const auto claimed = checked_mul(std::uint64_t{object.rows} * object.cols, element);
    if (is_matrix(object.kind) && !wave && claimed && *claimed <= source_nbytes) {
      damage.nbytes = *claimed;
    }
    damage.error = Error(ErrorKind::kCorrupt, damage.error.what());
    damaged_.emplace(record, std::move(damage));
  }

  Cursor& cursor_of(const Place& place) {
    if (place.file == kNone) {
      current_.reset();
      current_file_ = kNone;
      const SourcePtr output = run_pipe(std::string(commands_[place.offset]),
                                        files_.working_directory(), script_, *context_.cache);
      piped_.push_back(output);
      current_source_ = static_cast<std::uint32_t>(files_.size() + piped_.size() - 1);
      current_ = std::make_unique<Cursor>(*output);
    } else if (current_ == nullptr || current_file_ != place.file) {
      current_.reset();
      current_ = std::make_unique<Cursor>(*files_.source(place.file));
      current_file_ = place.file;
      current_source_ = place.file;
    }
    return *current_;
  }

  void apply_ranges() {
    if (ranges_.size() == 0) {
      return;
    }
    std::string why;
    for (std::uint64_t record = 0; record < places_.size(); ++record) {
      Place& place = places_[record];
      if (place.bad || place.range == kNone || damaged_.count(record) > 0) {
        continue;
      }
      const auto range = parse_range(ranges_[place.range], index_.objects[record], why);
      if (range) {
        index_.ranges.emplace_back(record, *range);
      } else {
        note_bad(place,
                 fmt::format("the range of key '{}' {}", printable(index_.keys[record]), why));
      }
    }
  }

  void note_bad(Place& place, const std::string& text) {
    place.bad = true;
    if (++bad_count_ == 1 || place.line < first_bad_line_) {
      first_bad_line_ = place.line;
      first_bad_ = text;
    }
  }

  Error place_error(std::uint32_t line, const std::string& text) const {
    return file_error(ErrorKind::kCorrupt, fmt::format("{} line {}", script_->name(), line), text);
  }

  void refuse_or_leave_out() {
    if (bad_count_ == 0) {
      return;
    }
    const Error error = place_error(
        first_bad_line_, bad_count_ == 1
                             ? first_bad_
                             : fmt::format("{} (and {} more lines)", first_bad_, bad_count_ - 1));
    if (!context_.permissive) {
      throw Error(error.kind(),
                  std::string(error.what()) + "; --permissive leaves such records out");
    }
    context_.warn(fmt::format("{}; left out", error.what()));
    keep_good();
  }

  void keep_good() {
    StringList keys;
    std::vector<std::pair<std::uint64_t, ObjectRange>> ranges;
    std::map<std::uint64_t, Damage> damaged;
    std::uint64_t kept = 0;
    for (std::uint64_t record = 0; record < places_.size(); ++record) {
      if (places_[record].bad) {
        continue;
      }
      keys.append(index_.keys[record]);
      if (const ObjectRange* range = index_.find_range(record)) {
        ranges.emplace_back(kept, *range);
      }
      if (const auto found = damaged_.find(record); found != damaged_.end()) {
        damaged.emplace(kept, found->second);
      }
      index_.objects[kept++] = index_.objects[record];
    }
    index_.objects.resize(kept);
    index_.keys = std::move(keys);
    index_.ranges = std::move(ranges);
    damaged_ = std::move(damaged);
  }

  // All files, then the commands' outputs: what Object::source says so far.
  void collect_sources() {
    for (std::uint32_t file = 0; file < files_.size(); ++file) {
      index_.sources.push_back(files_.opened(file));
    }
    index_.sources.insert(index_.sources.end(), piped_.begin(), piped_.end());
  }

  // Files that could not be opened drop out.
  void number_sources() {
    std::vector<std::uint32_t> numbers(index_.sources.size());
    std::vector<SourcePtr> used;
    for (std::size_t i = 0; i < index_.sources.size(); ++i) {
      numbers[i] = static_cast<std::uint32_t>(used.size());
      if (index_.sources[i] != nullptr) {
        used.push_back(index_.sources[i]);
      }
    }
    for (Object& object : index_.objects) {
      object.source = numbers.empty() ? 0 : numbers[object.source];
    }
    index_.sources = std::move(used);
    index_.more_sources.push_back(script_);
  }

  SourcePtr script_;
  OpenContext& context_;
  NamedFiles files_;
  ObjectReader objects_;
  ObjectIndex index_;
  std::vector<Place> places_;
  StringList ranges_;
  StringList commands_;
  std::vector<SourcePtr> piped_;
  std::map<std::uint64_t, Damage> damaged_;

  std::unique_ptr<Cursor> current_;
  std::uint32_t current_file_ = kNone;
  std::uint32_t current_source_ = 0;

  std::uint64_t bad_count_ = 0;
  std::uint32_t first_bad_line_ = 0;
  std::string first_bad_;
};

}  // namespace

ObjectIndex read_scp(const SourcePtr& script, const std::string& folder, Wanted wanted,
                     OpenContext& context) {
  return ScpReader(script, folder, std::move(wanted), context).read();
}

}  // namespace npyfs
