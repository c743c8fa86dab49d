// SPDX-License-Identifier: Apache-2.0

#include "formats/tfrecord/tfrecord.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/bytes/inflate.h"
#include "formats/extents.h"
#include "formats/kept_page.h"
#include "formats/tfrecord/columns.h"
#include "formats/tfrecord/example.h"
#include "formats/tfrecord/feature_rows.h"
#include "formats/tfrecord/walk.h"

namespace npyfs {

namespace {

// What the payloads are is decided by the first record whose checksum holds; one larger than this
// is believed unchecked.
constexpr std::uint64_t kMaxProbeNbytes = std::uint64_t{64} << 20;
// Where the first records fail, the writer did not know the checksum: the whole file would be read
// for nothing.
constexpr std::size_t kMaxWrongChecksums = 16;

class TfrecordTable : public RecordTable {
 public:
  // `fields` and `stored` are made of columns that share `records`.
  TfrecordTable(RecordsPtr records, std::vector<Field> fields)
      : records_(std::move(records)), fields_(std::move(fields)) {
    stored_.push_back({"", make_payload_column(records_)});
  }

  std::uint64_t size() const override { return records_->payloads.size(); }
  const std::vector<Field>& fields() const override { return fields_; }
  const std::vector<StoredUnit>& stored() const override { return stored_; }
  std::vector<SourcePtr> sources() const override { return {records_->source}; }

  const Damage* damage(std::uint64_t record) const override {
    return records_->damage.find(record);
  }
  std::uint64_t damaged_count() const override { return records_->damage.size(); }

 private:
  RecordsPtr records_;
  std::vector<Field> fields_;
  std::vector<StoredUnit> stored_;
};

// What the records of a file are.
struct RecordIndex {
  std::shared_ptr<Records> records;
  bool is_raw = false;  // no Examples
  FeatureMap features;
  FeatureMap feature_lists;

  void write(PageWriter& page) const {
    records->write(page);
    page.flag(is_raw);
    write_features(features, page);
    write_features(feature_lists, page);
  }
  static RecordIndex read(PageReader& page, const SourcePtr& source) {
    RecordIndex index;
    index.records = Records::read(page, source);
    index.is_raw = page.flag();
    index.features = read_features(page);
    index.feature_lists = read_features(page);
    for (const FeatureMap* features : {&index.features, &index.feature_lists}) {
      for (const auto& [name, rows] : *features) {
        const std::uint64_t records = index.records->payloads.size();
        PageReader::require(rows->size() <= records && rows->clash().value_or(0) <= records &&
                            rows->uneven().value_or(0) <= records);
      }
    }
    return index;
  }
};

// Walks a file once. One use.
class Indexer {
 public:
  Indexer(SourcePtr source, const OpenContext& context)
      : source_(std::move(source)),
        context_(context),
        window_(*source_),
        bytes_(*source_, window_),
        records_(std::make_shared<Records>()),
        features_(source_->name()),
        checking_(context.verifier->verifies()) {
    records_->source = source_;
    if (context.decode_kind("x") == "raw") {
      content_ = Content::kRaw;
    }
  }

  RecordIndex run() {
    walk();
    settle_cut_record();
    records_->payloads.shrink();
    records_->damage.shrink();
    RecordIndex index;
    index.records = records_;
    index.is_raw = content_ == Content::kRaw || content_ == Content::kUnknown;
    if (!index.is_raw) {
      index.features = features_.features();
      index.feature_lists = features_.feature_lists();
    }
    return index;
  }

 private:
  enum class Content { kUnknown, kRaw, kExample, kSequenceExample };
  using Step = RecordWalk::Step;

  void walk() {
    RecordWalk walk(*source_, window_);
    Step step = walk.next();
    for (; step.kind == Step::Kind::kRecord; step = walk.next()) {
      records_->payloads.append(step.offset, step.nbytes);
      take_record(records_->payloads.size() - 1);
    }
    switch (step.kind) {
      case Step::Kind::kCutRecord:
        take_cut_record(step);
        break;
      case Step::Kind::kCutHeader:
        warn(fmt::format("{}; the bytes from there on are left out", step.error->what()));
        break;
      case Step::Kind::kLost:
        take_lost_framing(step);
        break;
      default:
        break;
    }
  }

  void take_lost_framing(const Step& step) {
    if (!context_.permissive || records_->payloads.size() == 0) {
      throw Error(*step.error);
    }
    warn(fmt::format("{}; the {} records before it are shown", step.error->what(),
                     records_->payloads.size()));
  }

  void take_cut_record(const Step& step) {
    records_->cut_record = records_->payloads.size();
    records_->cut = Damage{*step.error, step.nbytes};
    records_->payloads.append(step.offset, step.nbytes);
  }

  ByteRange payload_of(std::uint64_t record) const {
    const auto place = records_->payloads[record];
    return {place.offset, place.offset + place.nbytes};
  }

  void take_record(std::uint64_t record) {
    if (content_ == Content::kUnknown) {
      detect(record);
    } else if (content_ != Content::kRaw) {
      parse(record);
    }
  }

  // The kind of all payloads is that of the first one that is not empty, not damaged and not beyond
  // our limits.
  void detect(std::uint64_t record) {
    const ByteRange payload = payload_of(record);
    if (payload.empty()) {
      features_.commit(record, payload.begin);
      return;
    }
    if (payload.nbytes() <= kMaxProbeNbytes && !intact(record)) {
      suspects_.push_back({record, std::nullopt});
      if (++wrong_checksums_ == kMaxWrongChecksums) {
        believe_suspects();
      }
      return;
    }
    std::optional<Error> too_large;
    const bool is_example = try_parse(payload, MessageKind::kSequenceExample, too_large) ||
                            try_parse(payload, MessageKind::kExample, too_large);
    if (!is_example && too_large) {
      suspects_.push_back({record, std::move(too_large)});
      return;
    }
    content_ = !is_example             ? Content::kRaw
               : features_.has_lists() ? Content::kSequenceExample
                                       : Content::kExample;
    if (is_example) {
      settle_suspects();
      features_.commit(record, payload.begin);
    }
  }

  // What the records are is seen in spite of their checksums, as with --verify=never. Their bytes
  // stay guarded.
  void believe_suspects() {
    checking_ = false;
    const auto first = std::find_if(suspects_.begin(), suspects_.end(),
                                    [](const Suspect& suspect) { return !suspect.too_large; });
    warn_at(first->record,
            fmt::format("the data of the first {} records does not match its checksums, expected "
                        "it to; the others are looked at when they are read; --verify=never "
                        "reads them all",
                        kMaxWrongChecksums));
    for (const Suspect& suspect : std::exchange(suspects_, {})) {
      take_record(suspect.record);
    }
  }

  // Whether the payload is such a message and has a feature: almost no other bytes do that.
  bool try_parse(ByteRange payload, MessageKind kind, std::optional<Error>& too_large) {
    features_.discard();
    try {
      parse_example(bytes_, payload, kind, features_);
    } catch (const WireFault& fault) {
      features_.discard();
      if (fault.kind() == ErrorKind::kTooLarge) {
        too_large = fault;
      }
    }
    return !features_.empty();
  }

  void parse(std::uint64_t record) {
    const ByteRange payload = payload_of(record);
    try {
      parse_example(
          bytes_, payload,
          content_ == Content::kExample ? MessageKind::kExample : MessageKind::kSequenceExample,
          features_);
    } catch (const WireFault& fault) {
      features_.discard();
      add_damage(record, fault.said(), [&] { return malformed_error(record, fault); });
      return;
    }
    if (features_.surprising() && !intact(record)) {
      features_.discard();
      add_damage(record, kChecksum, [&] { return mismatch_error(*records_, record); });
      return;
    }
    features_.commit(record, payload.begin);
  }

  bool intact(std::uint64_t record) const {
    return !checking_ || context_.verifier->is_intact(records_->guard(record));
  }

  Error malformed_error(std::uint64_t record, const Error& fault) const {
    if (fault.kind() == ErrorKind::kTooLarge) {
      // Readers get EIO, as of any damage.
      return {ErrorKind::kUnsupported,
              fmt::format("{}; record {} is not shown, --decode x=raw shows all of "
                          "them undecoded",
                          fault.what(), record)};
    }
    return {fault.kind(), fmt::format("{}; record {} is no valid Example, {}", fault.what(), record,
                                      strict_verifier().is_intact(records_->guard(record))
                                          ? "though its checksum holds: it was written so"
                                          : "nor does its checksum hold: the file is damaged")};
  }

  // Records before the first good one: now that it is known they are Examples. As raw bytes
  // they need no mention, their checksum speaks when they are read.
  void settle_suspects() {
    for (const Suspect& suspect : std::exchange(suspects_, {})) {
      const auto said = suspect.too_large ? suspect.too_large->said() : kChecksum;
      add_damage(suspect.record, said, [&] {
        return suspect.too_large ? malformed_error(suspect.record, *suspect.too_large)
                                 : mismatch_error(*records_, suspect.record);
      });
    }
  }

  // Its size says nothing of its features'.
  void settle_cut_record() {
    if (records_->cut_record) {
      const bool raw = content_ == Content::kRaw || content_ == Content::kUnknown;
      records_->damage.add(*records_->cut_record, records_->cut->error.said(), [&] {
        return Damage{records_->cut->error, raw ? records_->cut->nbytes : std::nullopt};
      });
    }
  }

  static constexpr std::string_view kChecksum = "checksum";

  // `said` as DamageList::add takes it; `describe` returns the Error.
  template <typename Describe>
  void add_damage(std::uint64_t record, std::string_view said, const Describe& describe) {
    records_->damage.add(record, said, [&] { return Damage{describe(), std::nullopt}; });
  }

  void warn(const std::string& text) const {
    if (context_.warn) {
      context_.warn(text);
    }
  }

  void warn_at(std::uint64_t record, const std::string& text) const {
    warn(corrupt_at(source_->name(), records_->payloads[record].offset, text).what());
  }

  SourcePtr source_;
  const OpenContext& context_;
  WindowReader window_;
  WireBytes bytes_;
  std::shared_ptr<Records> records_;
  FeatureIndex features_;
  Content content_ = Content::kUnknown;
  bool checking_;  // whether checksums are looked at while the index is made
  // Records that were not asked what the payloads are: their checksum does not hold, or they are
  // Examples of too many pieces.
  struct Suspect {
    std::uint64_t record;
    std::optional<Error> too_large;
  };
  std::vector<Suspect> suspects_;
  std::size_t wrong_checksums_ = 0;
};

// Makes the fields of the records, and says what is odd about them.
class FieldMaker {
 public:
  FieldMaker(const RecordIndex& index, const OpenContext& context)
      : index_(index), context_(context) {}

  std::vector<Field> make() {
    std::vector<Field> fields;
    if (index_.is_raw) {
      Field& field = fields.emplace_back();
      field.name = "x";
      field.bytes = make_payload_column(index_.records);
      return fields;
    }
    for (const auto& [name, rows] : index_.features) {
      warn_of_clash(name, *rows);
      fields.push_back(make_feature_field(name, index_.records, rows));
    }
    for (const auto& [name, rows] : index_.feature_lists) {
      warn_of_clash(name, *rows);
      warn_of_uneven_steps(name, *rows);
      fields.push_back(make_feature_list_field(name, index_.records, rows));
    }
    std::stable_sort(fields.begin(), fields.end(),
                     [](const Field& a, const Field& b) { return a.name < b.name; });
    return fields;
  }

 private:
  void warn_of_clash(const std::string& name, const FeatureRows& rows) const {
    if (const auto record = rows.clash()) {
      warn_at(*record, fmt::format("feature '{}' of record {} is of another kind than before, "
                                   "expected one of bytes, float or int64 throughout; it is shown "
                                   "as the bytes of its values",
                                   printable(name), *record));
    }
  }

  void warn_of_uneven_steps(const std::string& name, const FeatureRows& rows) const {
    if (const auto record = rows.uneven(); record && rows.kind() != ValueKind::kMixed) {
      warn_at(*record, fmt::format("feature list '{}' of record {} has steps of differing size, "
                                   "expected one size throughout; the values are shown one after "
                                   "another without the steps' boundaries",
                                   printable(name), *record));
    }
  }

  void warn_at(std::uint64_t record, const std::string& text) const {
    if (context_.warn) {
      context_.warn(
          corrupt_at(index_.records->source->name(), index_.records->payloads[record].offset, text)
              .what());
    }
  }

  const RecordIndex& index_;
  const OpenContext& context_;
};

std::vector<std::byte> read_plain_head(const ByteSource& source) {
  std::vector<std::byte> head(std::min<std::uint64_t>(source.nbytes(), kHeaderNbytes));
  source.read_at(0, head);
  return head;
}

bool is_compressed_tfrecord(const ByteSource& source) {
  return is_record_header(inflate_head(source, kHeaderNbytes));
}

bool recognises(const Location& location) {
  return location.source != nullptr && location.source->nbytes() >= kHeaderNbytes + kFooterNbytes &&
         (is_record_header(read_plain_head(*location.source)) ||
          is_compressed_tfrecord(*location.source));
}

// gzip is never taken for records; of zlib only what inflates to them, its magic being weak.
bool is_compressed(const ByteSource& source) {
  const auto head = read_plain_head(source);
  return !is_record_header(head) && (is_gzip(head) || is_compressed_tfrecord(source));
}

std::shared_ptr<const RecordTable> open(const Location& location, OpenContext& context) {
  if (location.source == nullptr) {
    throw file_error(ErrorKind::kUnsupported, location.path, "a TFRecord source is a file");
  }
  SourcePtr source = location.source;
  if (is_compressed(*source)) {
    InflateOptions options;
    options.permissive = context.permissive;
    options.content_is_checked = context.verifier->verifies();
    options.warn = context.warn;
    options.index = context.index;
    source = open_inflated(std::move(source), *context.cache, options);
  }
  const RecordIndex index = find_or_scan(
      "tfrecord 1", {&source, 1}, context,
      [&](OpenContext& own) { return Indexer(source, own).run(); },
      [&](PageReader& page) { return RecordIndex::read(page, source); });
  return std::make_shared<TfrecordTable>(index.records, FieldMaker(index, context).make());
}

}  // namespace

const Format kTfrecord = {.name = "tfrecord",
                          .extensions = {"tfrecord", "tfrecords", "record", "tfrec"},
                          .recognises = recognises,
                          .open = open};

}  // namespace npyfs
