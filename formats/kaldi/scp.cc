// SPDX-License-Identifier: Apache-2.0

#include "formats/kaldi/scp.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <memory>
#include <numeric>

#include "formats/bytes/descriptor_pool.h"
#include "formats/kaldi/location.h"
#include "formats/kaldi/pipe.h"
#include "formats/kaldi/script_lines.h"
#include "formats/kaldi/specifier.h"
#include "formats/named_files.h"

namespace npyfs {

namespace {

class ScpReader {
 public:
  ScpReader(const SourcePtr& script, const std::string& folder, Wanted wanted, OpenContext& context)
      : script_(script),
        context_(context),
        files_(folder, context),
        refused_(*script, context),
        lines_(read_script_lines(*script, context, files_, refused_)),
        objects_(std::move(wanted), script->name(), context) {}

  ObjectIndex read() {
    index_.objects.resize(lines_.places.size());
    read_objects();
    collect_sources();
    refuse_odd_kinds();
    if (!context_.permissive) {
      refused_.report();
    }
    objects_.settle(index_, [&](std::uint64_t record, const Error& error) {
      classify_failure(record, index_.objects[record], error);
    });
    apply_ranges();
    refused_.report();
    keep_good();
    if (index_.objects.empty() && !refused_.empty()) {
      throw file_error(ErrorKind::kCorrupt, script_->name(),
                       "no line of it has an object that can be shown, expected one");
    }
    check_sorted();
    note_damage();
    number_sources();
    index_.keys = std::move(lines_.keys);
    index_.keys.shrink();
    return std::move(index_);
  }

 private:
  // Headers are read in the order in which they lie in the files.
  void read_objects() {
    std::vector<std::uint64_t> order(lines_.places.size());
    std::iota(order.begin(), order.end(), std::uint64_t{0});
    const auto before = [&](std::uint64_t a, std::uint64_t b) {
      const Place& x = lines_.places[a];
      const Place& y = lines_.places[b];
      return x.file != y.file ? x.file < y.file : x.offset < y.offset;
    };
    if (!std::is_sorted(order.begin(), order.end(), before)) {
      std::stable_sort(order.begin(), order.end(), before);
    }
    const Place* last = nullptr;
    std::uint64_t last_record = 0;
    for (const std::uint64_t record : order) {
      Place& place = lines_.places[record];
      if (place.refused) {
        continue;
      }
      if (last != nullptr && last->file == place.file && last->offset == place.offset &&
          last->whole_file == place.whole_file) {
        index_.objects.built()[record] = index_.objects[last_record];
        continue;
      }
      read_object_at(record, place);
      last = place.refused || place.damaged ? nullptr : &place;
      last_record = record;
    }
  }

  void read_object_at(std::uint64_t record, Place& place) {
    Object object;
    try {
      Cursor& cursor = cursor_of(place);
      require_within(place, cursor.source());
      cursor.seek(place.is_command() ? 0 : place.offset);
      require_bounded(place);
      objects_.read(cursor, place.whole_file || place.is_command(), object);
      object.source = current_source_;
      if (const auto fault = ObjectReader::find_fault(cursor, object)) {
        throw Error(*fault);
      }
      note_overlap(place, object);
      index_.objects.built()[record] = object;
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::kChanged || is_want_of_descriptors(error.to_errno())) {
        throw;
      }
      object.source = current_source_;
      classify_failure(record, object, error);
    }
  }

  static void require_within(const Place& place, const ByteSource& source) {
    if (!place.is_command() && place.offset >= source.nbytes() &&
        source.nbytes() + place.offset > 0) {
      throw corrupt_at(source.name(), place.offset,
                       fmt::format("the object's offset is {}, expected one below the file's size "
                                   "{}",
                                   place.offset, source.nbytes()));
    }
  }

  // Places within one long line of text would make each read all that is left of it.
  void require_bounded(const Place& place) const {
    constexpr std::uint64_t kMostOverlap = std::uint64_t{64} << 20;
    if (overlap_nbytes_ > kMostOverlap && place.file == overlap_file_ &&
        place.offset < overlap_end_) {
      throw corrupt_at(current_->source().name(), place.offset,
                       "the object's offset lies within another one, expected one behind it");
    }
  }

  void note_overlap(const Place& place, const Object& object) {
    if (place.is_command() || !object.text) {
      return;
    }
    const bool same = place.file == overlap_file_;
    overlap_nbytes_ =
        !same ? 0 : overlap_nbytes_ + (place.offset < overlap_end_ ? object.nbytes : 0);
    overlap_end_ = std::max(same ? overlap_end_ : 0, place.offset + object.nbytes);
    overlap_file_ = place.file;
  }

  // One record's damage if the place is right and what is there is wrong; else the line is refused.
  // What is kept of the object changes nothing about the others.
  void classify_failure(std::uint64_t record, Object object, const Error& error) {
    Place& place = lines_.places[record];
    const bool of_content =
        error.kind() == ErrorKind::kCorrupt || error.kind() == ErrorKind::kUnsupported;
    const bool damaged = place.is_command() || (of_content && object.began);
    const bool sized = object.header_nbytes > 0 && !is_wave(object.kind);
    Object& kept = index_.objects.built()[record];
    kept = damaged && sized ? object : Object{};
    kept.source = object.source;
    if (!damaged) {
      refused_.add(place, error);
      return;
    }
    place.damaged = true;
    const std::string who =
        place.is_command()
            ? fmt::format("command '{}': ", lines_.commands[place.offset].substr(0, 200))
            : std::string();
    place.fault = static_cast<std::uint8_t>(fault_numbers_.number_of(error.said()));
    auto& alike = damaged_[place.fault];
    alike.emplace(record,
                  Damage{line_error(*script_, place.line, who + error.what()), std::nullopt});
    if (alike.size() > DamageList::kMaxTexts) {
      alike.erase(std::prev(alike.end()));  // nobody will ask for its text
    }
  }

  Cursor& cursor_of(const Place& place) {
    if (place.is_command()) {
      current_.reset();
      current_file_ = Place::kNone;
      const SourcePtr output = run_pipe(std::string(lines_.commands[place.offset]),
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

  // Unlike in an archive, where what looks like a line among matrices ends it, an object of another
  // kind than most is one wrong place.
  void refuse_odd_kinds() {
    std::map<Company, std::uint64_t> counts;
    for (std::uint64_t record = 0; record < lines_.places.size(); ++record) {
      if (is_good(record)) {
        ++counts[objects_.company_of(index_.objects[record])];
      }
    }
    counts.erase(Company::kEither);
    if (counts.size() < 2) {
      return;
    }
    // Matrices win a tie.
    const auto most = [](const auto& a, const auto& b) {
      return a.second != b.second ? a.second < b.second : b.first == Company::kBlocks;
    };
    const Company usual = std::max_element(counts.begin(), counts.end(), most)->first;
    for (std::uint64_t record = 0; record < lines_.places.size(); ++record) {
      Object& object = index_.objects.built()[record];
      const Company company = is_good(record) ? objects_.company_of(object) : Company::kEither;
      if (company != usual && company != Company::kEither) {
        refused_.add(lines_.places[record],
                     corrupt_at(index_.sources[object.source]->name(), object.offset,
                                fmt::format("the object is of type {}, expected a {} like the "
                                            "others",
                                            kind_name(object.kind), company_name(usual))));
        object = {};
      }
    }
  }

  bool is_good(std::uint64_t record) const {
    return !lines_.places[record].refused && !lines_.places[record].damaged;
  }

  // Also applies to damaged objects if their header tells their size: they keep the rows that they
  // would have.
  void apply_ranges() {
    std::string why;
    for (std::uint64_t record = 0; record < lines_.places.size(); ++record) {
      Place& place = lines_.places[record];
      const Object& object = index_.objects[record];
      const bool sized = !place.damaged || object.header_nbytes > 0;
      if (place.refused || place.range == Place::kNone || !sized) {
        continue;
      }
      const auto range = parse_range(lines_.ranges[place.range], object, why);
      if (range) {
        index_.ranges.emplace_back(record, *range);
        continue;
      }
      const std::string text =
          fmt::format("the range of key '{}' {}", printable(lines_.keys[record]), why);
      refused_.add(place, corrupt_at(index_.sources[object.source]->name(), object.offset, text));
    }
  }

  // Leaves out the refused.
  void keep_good() {
    if (refused_.empty()) {
      return;
    }
    StringList keys;
    std::vector<std::pair<std::uint64_t, ObjectRange>> ranges;
    std::uint64_t kept = 0;
    for (std::uint64_t record = 0; record < lines_.places.size(); ++record) {
      if (lines_.places[record].refused) {
        continue;
      }
      keys.append(lines_.keys[record]);
      if (const ObjectRange* range = index_.find_range(record)) {
        ranges.emplace_back(kept, *range);
      }
      if (lines_.places[record].damaged) {
        auto& alike = damaged_[lines_.places[record].fault];
        if (auto found = alike.extract(record)) {
          found.key() = kept;
          alike.insert(std::move(found));
        }
      }
      lines_.places[kept] = lines_.places[record];
      index_.objects.built()[kept++] = index_.objects[record];
    }
    lines_.places.resize(kept);
    index_.objects.resize(kept);
    lines_.keys = std::move(keys);
    index_.ranges = std::move(ranges);
  }

  void check_sorted() const {
    const auto record = context_.has(kKeysSorted) ? first_unsorted(lines_.keys) : std::nullopt;
    if (record) {
      throw line_error(*script_, lines_.places[*record].line, unsorted_text(lines_.keys, *record));
    }
  }

  void note_damage() {
    for (std::uint64_t record = 0; record < lines_.places.size(); ++record) {
      if (const Place& place = lines_.places[record]; place.damaged) {
        const auto& alike = damaged_[place.fault];
        index_.damage.add(record, alike.begin()->second.error.said(),
                          [&] { return sized_damage(alike.at(record), record); });
      }
    }
    index_.damage.shrink();
  }

  Damage sized_damage(Damage damage, std::uint64_t record) const {
    // A file that is cut may claim more than it has, a header that is damaged anything.
    constexpr std::uint64_t kCredible = std::uint64_t{64} << 20;
    const Object& object = index_.objects[record];
    if (object.header_nbytes == 0) {
      return damage;
    }
    const bool wide =
        object.kind == ObjectKind::kDoubleMatrix || object.kind == ObjectKind::kDoubleVector;
    const std::uint64_t cols = is_vector(object.kind) ? 1 : object.cols;
    const auto claimed = checked_mul(std::uint64_t{object.rows} * cols, wide ? 8 : 4);
    if (claimed && *claimed <= std::max(index_.sources[object.source]->nbytes(), kCredible)) {
      const ObjectRange* range = index_.find_range(record);
      damage.nbytes = *claimed;
      damage.rows = range != nullptr ? range->rows : object.rows;
    }
    return damage;
  }

  // All files, then the commands' outputs: what Object::source says so far.
  void collect_sources() {
    for (std::uint32_t file = 0; file < files_.size(); ++file) {
      index_.sources.push_back(files_.opened(file));
    }
    index_.sources.insert(index_.sources.end(), piped_.begin(), piped_.end());
  }

  // Files that could not be opened drop out. There is always one source, so that even damaged
  // objects have theirs.
  void number_sources() {
    std::vector<std::uint32_t> numbers(index_.sources.size());
    std::vector<SourcePtr> used;
    for (std::size_t i = 0; i < index_.sources.size(); ++i) {
      numbers[i] = static_cast<std::uint32_t>(used.size());
      if (index_.sources[i] != nullptr) {
        used.push_back(index_.sources[i]);
      }
    }
    if (used.empty()) {
      used.push_back(script_);
    }
    for (Object& object : index_.objects.built()) {
      const std::uint32_t number = object.source < numbers.size() ? numbers[object.source] : 0;
      object.source = number < used.size() ? number : 0;
    }
    index_.sources = std::move(used);
    index_.more_sources.push_back(script_);
  }

  SourcePtr script_;
  OpenContext& context_;
  NamedFiles files_;
  RefusedLines refused_;
  ScriptLines lines_;
  ObjectReader objects_;
  ObjectIndex index_;
  std::vector<SourcePtr> piped_;
  // Of each kind of damage the first records, as many as may have a text of their own.
  FaultKinds fault_numbers_;
  std::array<std::map<std::uint64_t, Damage>, FaultKinds::kMost + 1> damaged_;

  std::unique_ptr<Cursor> current_;
  std::uint32_t current_file_ = Place::kNone;
  std::uint32_t current_source_ = 0;
  // Texts that overlap in one file: how far they reach, and how much was read more than once.
  std::uint32_t overlap_file_ = Place::kNone;
  std::uint64_t overlap_end_ = 0;
  std::uint64_t overlap_nbytes_ = 0;
};

}  // namespace

ObjectIndex read_scp(const SourcePtr& script, const std::string& folder, Wanted wanted,
                     OpenContext& context) {
  return ScpReader(script, folder, std::move(wanted), context).read();
}

}  // namespace npyfs
