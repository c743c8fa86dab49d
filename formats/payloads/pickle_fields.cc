// SPDX-License-Identifier: Apache-2.0

#include "formats/payloads/pickle_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "formats/bytes/byte_range.h"
#include "formats/bytes/fault_tally.h"
#include "formats/bytes/utf8.h"
#include "formats/damage_list.h"
#include "formats/extents.h"
#include "formats/payloads/payload_table.h"
#include "formats/payloads/pickle.h"
#include "formats/payloads/pickle_item.h"

namespace npyfs {

namespace {

// What lies between two arrays of a pickle is some hundred bytes.
constexpr std::size_t kWindowNbytes = 4096;
// Dicts that are data themselves (one key for each of many things) are no samples.
constexpr std::size_t kMostFields = 1024;
constexpr std::uint64_t kMostKeyNbytes = 4096;
// Fields that most records lack take memory all the same.
constexpr std::uint64_t kSlotsPerItem = 16;
constexpr std::uint64_t kAlwaysAllowedSlots = std::uint64_t{1} << 20;
constexpr int kMaxSurprises = 16;
constexpr std::uint64_t kMaxProbeNbytes = std::uint64_t{64} << 20;

enum class Form : std::uint8_t { kWhole, kPair, kDict };

// The parts of a sample, by name. Throws kUnsupported for a dict with other keys than text.
std::vector<std::pair<std::string, PickleRef>> parts_of(const PickleTree& tree, Form form,
                                                        PayloadBytes& pickle) {
  switch (form) {
    case Form::kWhole:
      return {{"", tree.root()}};
    case Form::kPair:
      return {{"", tree.items(tree.root())[0]}, {"y", tree.items(tree.root())[1]}};
    case Form::kDict:
      break;
  }
  std::vector<std::pair<std::string, PickleRef>> parts;
  std::map<std::string, std::size_t> places;
  const auto& items = tree.items(tree.root());
  for (std::size_t i = 0; i < items.size(); i += 2) {
    const PickleTree::Node& key = tree[items[i]];
    if (key.kind != PickleKind::kText || key.nbytes > kMostKeyNbytes) {
      throw Error(ErrorKind::kUnsupported, "a dict whose keys are no names");
    }
    std::string name = tree.bytes_of(items[i], pickle);
    const auto [place, is_new] = places.emplace(name, parts.size());
    if (is_new) {
      parts.emplace_back(std::move(name), items[i + 1]);
    } else {
      parts[place->second].second = items[i + 1];
    }
    if (parts.size() > kMostFields) {
      throw Error(ErrorKind::kUnsupported,
                  fmt::format("a dict with more than {} keys", kMostFields));
    }
  }
  return parts;
}

Form form_of(const PickleTree& tree) {
  const PickleKind kind = tree[tree.root()].kind;
  if (kind == PickleKind::kDict) {
    return Form::kDict;
  }
  return kind == PickleKind::kTuple && tree.items(tree.root()).size() == 2 ? Form::kPair
                                                                           : Form::kWhole;
}

// What all fields of the samples share.
struct Samples {
  std::shared_ptr<const ByteColumn> bytes;
  Form form = Form::kWhole;
  DamageList found;

  const Damage* damage(std::uint64_t record) const {
    if (const Damage* known = bytes->damage(record)) {
      return known;
    }
    return found.empty() ? nullptr : found.find(record);
  }
};

// One part of every sample; 17 bytes a record.
class PickleColumn : public Column {
 public:
  PickleColumn(std::shared_ptr<const Samples> samples, std::string part)
      : samples_(std::move(samples)), part_(std::move(part)) {}

  // Whether the item has the column's dtype, and its shape but for axis 0, as far as these are
  // known.
  bool takes(const PickleItem& item) const {
    if (!typed_ || item.source == PickleSource::kAbsent) {
      return true;
    }
    if (item.source == PickleSource::kNothing) {
      return !scalar_;
    }
    return one_type(item.dtype) && scalar_ == item.shape.empty() &&
           (scalar_ || std::equal(item.shape.begin() + 1, item.shape.end(), trailing_.begin(),
                                  trailing_.end()));
  }
  bool same_rows(const PickleItem& item) const {
    return sources_.empty() || item.shape.empty() || rows_.back() == item.shape[0];
  }

  // Whether the items of text, all as wide as the longest, are still of a size that their pickles
  // bear out.
  bool bears(const PickleItem& item, std::uint64_t pickle_nbytes) {
    if (item.dtype.kind != 'U') {
      return true;
    }
    most_elements_ = std::max(most_elements_, element_count(item.shape).value_or(INT64_MAX));
    most_pickle_nbytes_ = std::max(most_pickle_nbytes_, pickle_nbytes);
    const auto nbytes = checked_mul(most_elements_, std::max(dtype_.itemsize, item.dtype.itemsize));
    return nbytes && *nbytes <= most_item_nbytes(most_pickle_nbytes_);
  }

  // Only what it takes.
  void add(std::uint64_t record, const PickleItem& item) {
    sources_.resize(record, PickleSource::kAbsent);
    rows_.resize(record);
    places_.resize(record);
    const bool counted = item.source != PickleSource::kText && !item.shape.empty();
    sources_.push_back(item.source);
    rows_.push_back(counted ? item.shape[0] : item.nbytes);
    places_.push_back(item.place);
    if (item.source == PickleSource::kAbsent || item.source == PickleSource::kNothing) {
      has_nothing_ = has_nothing_ || item.source == PickleSource::kNothing;
      return;
    }
    if (!typed_) {
      typed_ = true;
      dtype_ = item.dtype;
      scalar_ = item.shape.empty();
      trailing_.assign(item.shape.begin() + (scalar_ ? 0 : 1), item.shape.end());
    } else if (item.dtype.itemsize > dtype_.itemsize) {
      dtype_ = item.dtype;
    }
  }

  // Once all records are added. False where lists without elements are beside numbers alone, or
  // there is nothing at all.
  bool finish() {
    sources_.shrink_to_fit();
    rows_.shrink_to_fit();
    places_.shrink_to_fit();
    if (!typed_ && has_nothing_) {
      typed_ = true;  // as np.array([])
      dtype_ = DType::simple("<f8");
    }
    return typed_ && !(scalar_ && has_nothing_);
  }
  std::uint64_t slots() const { return sources_.size(); }

  std::uint64_t size() const override { return samples_->bytes->size(); }
  void inspect(std::uint64_t record, Item& item) const override {
    item.damage = samples_->damage(record);
    item.present = source(record) != PickleSource::kAbsent || is_text();
    if (item.damage != nullptr || !item.present) {
      return;
    }
    item.dtype = dtype_;
    item.shape.clear();
    if (!scalar_) {
      item.shape.push_back(rows_[record]);
      item.shape.insert(item.shape.end(), trailing_.begin(), trailing_.end());
    }
  }

  bool decoded(std::uint64_t record) const override {
    const PickleSource found = source(record);
    return found == PickleSource::kText || found == PickleSource::kRebuilt ||
           found == PickleSource::kAbsent;
  }

  void plan(std::uint64_t record, ByteRange range, Plan& plan) const override {
    const std::uint64_t place = places_[record];
    if (source(record) == PickleSource::kValue) {
      plan.add_memory(reinterpret_cast<const std::byte*>(&places_[record]) + range.begin,
                      range.nbytes(), samples_->bytes->guard(record));
    } else {
      plan_stored(*samples_->bytes, record, {range.begin + place, range.end + place}, plan);
    }
  }

  void decode(std::uint64_t record, std::span<std::byte> out,
              DecodeContext& context) const override {
    const PickleSource found = source(record);
    if (found == PickleSource::kAbsent) {  // text that is not there
      std::fill(out.begin(), out.end(), std::byte{0});
      return;
    }
    const ByteColumn& bytes = *samples_->bytes;
    context.require_intact(bytes.guard(record));
    if (found == PickleSource::kText) {
      std::string text(rows_[record], '\0');
      read_stored(bytes, record, places_[record], std::as_writable_bytes(std::span(text)));
      write_utf32(text, out);
      return;
    }
    RecordBytes place(bytes, 0);
    place.open(record);
    std::vector<std::byte> stored(place.nbytes());
    read_stored(bytes, record, 0, stored);
    MemoryBytes pickle(stored, "pickle");
    try {
      const PickleTree tree = parse_pickle(pickle);
      if (form_of(tree) != samples_->form) {
        throw Error(ErrorKind::kCorrupt, "the sample is of another form than it was");
      }
      for (const auto& [name, ref] : parts_of(tree, samples_->form, pickle)) {
        if (name == part_) {
          build_item(tree, ref, pickle, dtype_, out);
          return;
        }
      }
      throw Error(ErrorKind::kCorrupt, "the part of the sample is gone");
    } catch (const Error& error) {
      throw place.fault(0, error.what());
    }
  }

 private:
  PickleSource source(std::uint64_t record) const {
    return record < sources_.size() ? sources_[record] : PickleSource::kAbsent;
  }
  bool is_text() const { return scalar_ && dtype_.kind == 'U'; }
  bool one_type(const DType& dtype) const {
    return dtype == dtype_ || (dtype.kind == 'U' && dtype_.kind == 'U');
  }

  std::shared_ptr<const Samples> samples_;
  std::string part_;
  bool typed_ = false;
  bool scalar_ = false;
  bool has_nothing_ = false;
  DType dtype_;
  Shape trailing_;
  std::uint64_t most_elements_ = 0;  // of text
  std::uint64_t most_pickle_nbytes_ = 0;
  std::vector<PickleSource> sources_;
  std::vector<std::uint64_t> rows_;    // or the bytes of a text
  std::vector<std::uint64_t> places_;  // in the pickle, or a value
};

// A part of the samples, until all have been seen.
struct Part {
  std::string name;  // of the key; empty for the sample itself
  std::shared_ptr<PickleColumn> column;
  std::string odd;  // why it makes no array
};

class SampleReader {
 public:
  SampleReader(const Field& field, const RecordTable& table, const Verifier& verifier,
               const std::function<void(const std::string&)>& warn)
      : field_(field), table_(table), verifier_(verifier), warn_(warn) {
    samples_->bytes = field.bytes;
  }

  std::optional<std::vector<Field>> read() {
    RecordBytes pickle(*field_.bytes, kWindowNbytes);
    for (std::uint64_t record = 0; record < field_.bytes->size(); ++record) {
      if (field_.bytes->damage(record) == nullptr && pickle.open(record) && pickle.nbytes() > 0 &&
          !read_one(record, pickle)) {
        return std::nullopt;
      }
    }
    samples_->found.shrink();
    return make_fields();
  }

 private:
  struct Found {
    Form form = Form::kWhole;
    std::uint64_t nbytes = 0;  // of the pickle
    std::vector<std::pair<std::string, PickleItem>> items;
    std::vector<std::pair<std::string, std::string>> odd;  // parts that are no items, and why
  };

  // False where the samples stay bytes.
  bool read_one(std::uint64_t record, RecordBytes& pickle) {
    Found found;
    try {
      found = look_at(pickle);
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::kCorrupt) {
        add_damage(record, error.wrapped("", fmt::format(" ({})", record_name(table_, record))),
                   error.said());
        return true;
      }
      if (error.kind() != ErrorKind::kUnsupported) {
        throw;
      }
      return is_damaged(record) || stay_bytes(record, error.what());
    }
    if (seen_ && found.form != samples_->form) {
      return is_damaged(record) || stay_bytes(record, "another form than that of the first");
    }
    const bool contradicts =
        std::any_of(found.items.begin(), found.items.end(), [&](const auto& i) {
          const Part* part = find(i.first);
          return part != nullptr && part->odd.empty() && !part->column->takes(i.second);
        });
    const bool surprises = !seen_ || contradicts || has_other_rows(found);
    const bool affordable = intact_surprises_ < kMaxSurprises && pickle.nbytes() <= kMaxProbeNbytes;
    if (surprises && (contradicts || affordable)) {
      if (is_damaged(record)) {
        return true;
      }
      ++intact_surprises_;
    }
    return commit(record, found);
  }

  static Found look_at(RecordBytes& pickle) {
    if (is_mostly_holes(pickle.nbytes(), pickle.hole_nbytes())) {
      throw pickle.fault(0, fmt::format("the pickle has {} bytes of which {} are holes, expected "
                                        "fewer",
                                        pickle.nbytes(), pickle.hole_nbytes()));
    }
    const PickleTree tree = parse_pickle(pickle);
    if (tree.unknown()) {
      throw Error(ErrorKind::kUnsupported,
                  fmt::format("{}, which only code can make", *tree.unknown()));
    }
    Found found;
    found.form = form_of(tree);
    found.nbytes = pickle.nbytes();
    for (const auto& [name, ref] : parts_of(tree, found.form, pickle)) {
      try {
        found.items.emplace_back(name, describe_pickle(tree, ref, pickle));
      } catch (const Error& error) {
        if (error.kind() != ErrorKind::kUnsupported) {
          throw;
        }
        found.odd.emplace_back(name, error.what());
      }
    }
    return found;
  }

  // False where the parts of the samples would take memory without end.
  bool commit(std::uint64_t record, const Found& found) {
    seen_ = true;
    samples_->form = found.form;
    for (const auto& [name, item] : found.items) {
      Part& part = find_or_add(name);
      if (part.odd.empty() && !part.column->takes(item)) {
        part.odd = fmt::format("{} has {} {}, unlike those before", record_name(table_, record),
                               item.dtype.text(), shape_text(item.shape));
      }
      if (part.odd.empty() && !part.column->bears(item, found.nbytes)) {
        part.odd = fmt::format(
            "{} has {} {}; with all texts as wide as the longest that is more "
            "than its bytes can ask for",
            record_name(table_, record), item.dtype.text(), shape_text(item.shape));
      }
      if (!part.odd.empty()) {
        continue;
      }
      slots_ += record + 1 - part.column->slots();
      if (slots_ > kAlwaysAllowedSlots + ++items_ * kSlotsPerItem) {
        return stay_bytes(record, "parts that nearly all samples lack");
      }
      part.column->add(record, item);
    }
    for (const auto& [name, why] : found.odd) {
      Part& part = find_or_add(name);
      if (part.odd.empty()) {
        part.odd = fmt::format("{} has {}", record_name(table_, record), why);
      }
    }
    return parts_.size() <= kMostFields ||
           stay_bytes(record,
                      fmt::format("the {}th part of samples that are not alike", parts_.size()));
  }

  bool has_other_rows(const Found& found) {
    return std::any_of(found.items.begin(), found.items.end(), [&](const auto& i) {
      const Part* part = find(i.first);
      return part == nullptr || (part->odd.empty() && !part->column->same_rows(i.second));
    });
  }

  // Whether a record that surprises does not match its checksum, and is left at that.
  bool is_damaged(std::uint64_t record) {
    const auto fault = verifier_.fault_of(field_.bytes->guard(record));
    if (fault) {
      add_damage(record, *fault, "checksum");  // what it is differs from record to record
    }
    return fault.has_value();
  }

  // Faults of one `kind` are told as one.
  void add_damage(std::uint64_t record, const Error& why, std::string_view kind) {
    faults_.add(kind, why.what());
    samples_->found.add(record, kind, [&] { return Damage{why, std::nullopt}; });
  }

  bool stay_bytes(std::uint64_t record, const std::string& what) {
    warn_(fmt::format("{}: {} is shown as stored bytes: {} has {}", source_name(), field_.name,
                      record_name(table_, record), what));
    return false;
  }

  std::string source_name() const {
    const auto sources = table_.sources();
    return sources.empty() ? "source" : printable(sources.front()->name());
  }

  Part* find(const std::string& name) {
    const auto at = places_.find(name);
    return at == places_.end() ? nullptr : &parts_[at->second];
  }
  Part& find_or_add(const std::string& name) {
    if (Part* part = find(name)) {
      return *part;
    }
    places_.emplace(name, parts_.size());
    return parts_.emplace_back(
        Part{name, std::make_shared<PickleColumn>(samples_, name), std::string()});
  }

  std::string field_name(const std::string& part) const {
    if (part.empty()) {
      return samples_->form == Form::kDict ? part : field_.name;
    }
    return field_.name == "x" ? part : field_.name + "_" + part;
  }

  std::optional<std::vector<Field>> make_fields() {
    std::vector<Field> fields;
    const bool is_dict = samples_->form == Form::kDict;
    for (Part& part : parts_) {
      if (part.odd.empty() && !part.column->finish()) {
        part.odd = "no record has a value that makes an array";
      }
      const bool main = !is_dict && part.name.empty();
      if (!part.odd.empty() && !main) {
        warn_(fmt::format("{}: {} is left out: {}", source_name(), printable(field_name(part.name)),
                          part.odd));
        continue;
      }
      Field& field = fields.emplace_back();
      field.name = field_name(part.name);
      if (main) {
        field.bytes = field_.bytes;
      }
      if (part.odd.empty()) {
        field.typed = part.column;
      } else {
        warn_(fmt::format("{}: {} is shown as stored bytes: {}", source_name(), field.name,
                          part.odd));
      }
    }
    if (parts_.empty() && !samples_->found.empty()) {
      faults_.tell([&](const std::string& text) {
        warn_(fmt::format("{}: {} is shown as stored bytes, as no sample can be read: {}",
                          source_name(), field_.name, text));
      });
    }
    return fields.empty() ? std::nullopt : std::optional(std::move(fields));
  }

  const Field& field_;
  const RecordTable& table_;
  const Verifier& verifier_;
  const std::function<void(const std::string&)>& warn_;
  std::shared_ptr<Samples> samples_ = std::make_shared<Samples>();
  std::vector<Part> parts_;
  std::map<std::string, std::size_t> places_;
  FaultTally faults_{"damaged records"};
  bool seen_ = false;
  std::uint64_t items_ = 0;
  std::uint64_t slots_ = 0;  // of all columns
  int intact_surprises_ = 0;
};

}  // namespace

bool is_pickled(const Field& field, std::uint64_t record) {
  if (!field.extension.empty()) {
    const Payload* payload = payload_of_extension(field.extension);
    return payload != nullptr && payload->is_fields == is_pickled;
  }
  if (!field.maybe_pickled) {
    return false;
  }
  RecordBytes pickle(*field.bytes, kWindowNbytes);
  if (!pickle.open(record) || pickle.nbytes() < 3) {
    return false;
  }
  const bool named = pickle.at(0, 1)[0] == std::byte{0x80} && pickle.at(1, 1)[0] <= std::byte{5};
  if (pickle.at(pickle.nbytes() - 1, 1)[0] != std::byte{'.'}) {
    return false;
  }
  try {
    const PickleTree tree = parse_pickle(pickle);
    // Protocols 0 and 1 do not say what they are, and a text that looks like a number is none.
    const PickleKind kind = tree[tree.root()].kind;
    const bool structured = kind == PickleKind::kDict || kind == PickleKind::kTuple ||
                            kind == PickleKind::kList || kind == PickleKind::kArray;
    return tree.end() == pickle.nbytes() && (named || structured);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kCorrupt && error.kind() != ErrorKind::kUnsupported) {
      throw;
    }
    return named && error.kind() == ErrorKind::kUnsupported;
  }
}

std::optional<std::vector<Field>> make_pickle_fields(
    const Field& field, const RecordTable& table, const Verifier& verifier,
    const std::function<void(const std::string&)>& warn) {
  return SampleReader(field, table, verifier, warn).read();
}

}  // namespace npyfs
