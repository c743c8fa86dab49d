// SPDX-License-Identifier: Apache-2.0

#include "formats/tfrecord/columns.h"

#include <fmt/format.h>

#include <utility>

#include "formats/extents.h"
#include "formats/tfrecord/walk.h"

namespace npyfs {

namespace {

DType dtype_of(ValueKind kind) {
  switch (kind) {
    case ValueKind::kFloat:
      return DType::simple("<f4");
    case ValueKind::kInt64:
      return DType::simple("<i8");
    default:
      return DType::simple("|u1");
  }
}

class PayloadColumn : public ByteColumn {
 public:
  explicit PayloadColumn(RecordsPtr records) : records_(std::move(records)) {}

  std::uint64_t size() const override { return records_->payloads.size(); }
  bool locate(std::uint64_t record, std::vector<Extent>& out) const override {
    const auto place = records_->payloads[record];
    out.assign(1, {records_->source.get(), place.offset, place.nbytes});
    return true;
  }
  const Damage* damage(std::uint64_t record) const override {
    return records_->cut_record == record ? &*records_->cut : nullptr;
  }
  Guard guard(std::uint64_t record) const override { return records_->guard(record); }
  std::optional<std::uint64_t> equal_nbytes() const override {
    const bool equal = size() > 0 && records_->payloads.equal() && !records_->cut_record;
    return equal ? std::optional(records_->payloads[0].nbytes) : std::nullopt;
  }

 private:
  RecordsPtr records_;
};

// The values of a feature as they are stored. Of byte strings: what is in them is for the payload
// decoders to find out.
class StoredValuesColumn : public ByteColumn {
 public:
  StoredValuesColumn(RecordsPtr records, std::shared_ptr<const FeatureRows> rows)
      : records_(std::move(records)), rows_(std::move(rows)) {}

  std::uint64_t size() const override { return records_->payloads.size(); }
  bool locate(std::uint64_t record, std::vector<Extent>& out) const override {
    out.clear();
    const auto row = rows_->find(record);
    if (!row) {
      return false;
    }
    const std::uint64_t payload = records_->payloads[record].offset;
    ByteRange single;
    for (const ByteRange& slice : rows_->slices(*row, single)) {
      out.push_back({records_->source.get(), payload + slice.begin, slice.nbytes()});
    }
    return true;
  }
  const Damage* damage(std::uint64_t record) const override {
    return records_->damage.find(record);
  }
  Guard guard(std::uint64_t record) const override { return records_->guard(record); }
  std::optional<std::uint64_t> equal_nbytes() const override {
    const bool equal = size() > 0 && rows_->size() == size() && rows_->equal_nbytes();
    return equal ? std::optional((*rows_)[0].decoded_nbytes) : std::nullopt;
  }

 private:
  RecordsPtr records_;
  std::shared_ptr<const FeatureRows> rows_;
};

// How the decoded values of a record become an item.
struct ItemRule {
  enum class Form {
    kScalar,    // []
    kVector,    // [values]
    kSteps,     // [steps]
    kStepRows,  // [steps, row_items]
  };
  DType dtype;
  Form form = Form::kVector;
  std::uint64_t row_items = 0;

  Shape shape(const FeatureRows::Row& row) const {
    switch (form) {
      case Form::kScalar:
        return {};
      case Form::kSteps:
        return {row.steps};
      case Form::kStepRows:
        return {row.steps, row_items};
      default:
        return {row.decoded_nbytes / dtype.itemsize};
    }
  }
};

// A feature of numbers, or a feature list. Values that lie in the file as numpy has them are
// mapped, all others decoded.
class ValuesColumn : public Column {
 public:
  ValuesColumn(RecordsPtr records, std::shared_ptr<const FeatureRows> rows, ItemRule rule,
               bool is_list)
      : records_(std::move(records)),
        rows_(std::move(rows)),
        stored_(records_, rows_),
        rule_(std::move(rule)),
        is_list_(is_list) {}

  std::uint64_t size() const override { return records_->payloads.size(); }

  void inspect(std::uint64_t record, Item& item) const override {
    item = Item{};
    item.damage = records_->damage.find(record);
    const auto row = rows_->find(record);
    item.present = row.has_value() || item.damage != nullptr;
    if (row) {
      item.dtype = rule_.dtype;
      item.shape = rule_.shape((*rows_)[*row]);
    }
  }

  std::optional<Item> uniform() const override {
    if (size() == 0 || rows_->size() != size() || !rows_->equal_nbytes()) {
      return std::nullopt;
    }
    return Item{true, nullptr, rule_.dtype, rule_.shape((*rows_)[0])};
  }

  bool decoded(std::uint64_t record) const override {
    const auto row = rows_->find(record);
    return row && !(*rows_)[*row].direct;
  }

  void plan(std::uint64_t record, ByteRange range, Plan& plan) const override {
    plan_stored(stored_, record, range, plan);
  }

  void decode(std::uint64_t record, std::span<std::byte> out,
              DecodeContext& context) const override {
    context.require_intact(records_->guard(record));
    const std::uint64_t row = *rows_->find(record);
    const SliceKind kind = is_list_                                  ? SliceKind::kFeatureList
                           : (*rows_)[row].kind == ValueKind::kInt64 ? SliceKind::kInt64List
                                                                     : SliceKind::kFloatList;
    const ByteSource& source = *records_->source;
    const std::uint64_t payload = records_->payloads[record].offset;
    std::vector<std::byte> stored;
    std::size_t position = 0;
    ByteRange single;
    for (const ByteRange& slice : rows_->slices(row, single)) {
      const ByteRange place{payload + slice.begin, payload + slice.end};
      stored.resize(place.nbytes());
      source.read_at(place.begin, stored);
      decode_values(WireBytes(source, stored, place.begin), place, kind, out, position);
    }
    if (position != out.size()) {
      throw corrupt_at(source.name(), payload,
                       fmt::format("a feature's values take {} bytes, expected {} as when the file "
                                   "was indexed; mount again",
                                   position, out.size()));
    }
  }

 private:
  RecordsPtr records_;
  std::shared_ptr<const FeatureRows> rows_;
  StoredValuesColumn stored_;
  ItemRule rule_;
  bool is_list_;
};

ItemRule list_rule(const FeatureRows& rows) {
  ItemRule rule{dtype_of(rows.kind()), ItemRule::Form::kVector, 0};
  const auto step_nbytes = rows.step_nbytes();
  if (rows.kind() == ValueKind::kMixed || !step_nbytes) {
    return rule;
  }
  rule.row_items = *step_nbytes / rule.dtype.itemsize;
  const bool scalar = rule.row_items == 1 && rows.kind() != ValueKind::kBytes;
  rule.form = scalar ? ItemRule::Form::kSteps : ItemRule::Form::kStepRows;
  return rule;
}

}  // namespace

std::optional<Checksum> Records::checksum(std::uint64_t record) const {
  const auto place = payloads[record];
  return Checksum{Checksum::Kind::kCrc32cMasked,
                  {source.get(), place.offset, place.nbytes},
                  {source.get(), place.offset + place.nbytes, kFooterNbytes}};
}

void Records::write(PageWriter& page) const {
  payloads.write(page);
  damage.write(page);
  page.optional(cut_record);
  if (cut_record) {
    cut->write(page);
  }
}

std::shared_ptr<Records> Records::read(PageReader& page, SourcePtr source) {
  auto records = std::make_shared<Records>();
  records->source = std::move(source);
  records->payloads = ExtentColumn::read(page);
  records->damage = DamageList::read(page);
  records->cut_record = page.optional();
  if (records->cut_record) {
    PageReader::require(*records->cut_record < records->payloads.size());
    records->cut = Damage::read(page);
  }
  return records;
}

std::string Records::name_of(std::uint64_t record) const {
  return fmt::format("record {}", record);
}

std::shared_ptr<const ByteColumn> make_payload_column(RecordsPtr records) {
  return std::make_shared<PayloadColumn>(std::move(records));
}

Field make_feature_field(const std::string& name, RecordsPtr records,
                         std::shared_ptr<const FeatureRows> rows) {
  Field field;
  field.name = name;
  if (rows->kind() == ValueKind::kBytes) {
    // Several strings one after another are no image and no .npy file, whatever the first one is.
    field.extension = rows->single() ? "" : "bin";
    field.bytes = std::make_shared<StoredValuesColumn>(std::move(records), std::move(rows));
    return field;
  }
  const bool scalar = rows->single() && rows->kind() != ValueKind::kMixed;
  ItemRule rule{dtype_of(rows->kind()), scalar ? ItemRule::Form::kScalar : ItemRule::Form::kVector,
                0};
  field.typed =
      std::make_shared<ValuesColumn>(std::move(records), std::move(rows), std::move(rule), false);
  return field;
}

Field make_feature_list_field(const std::string& name, RecordsPtr records,
                              std::shared_ptr<const FeatureRows> rows) {
  Field field;
  field.name = name;
  field.time_series = true;
  ItemRule rule = list_rule(*rows);
  field.typed =
      std::make_shared<ValuesColumn>(std::move(records), std::move(rows), std::move(rule), true);
  return field;
}

}  // namespace npyfs
