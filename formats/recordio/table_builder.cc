// SPDX-License-Identifier: Apache-2.0

#include "formats/recordio/table_builder.h"

#include <fmt/format.h>

#include <utility>

namespace npyfs {

namespace {

// How many records may tell nothing (no image behind a header) before they are taken as plain.
constexpr std::size_t kMaxHeld = 16;

class RecordioTable : public RecordTable {
 public:
  RecordioTable(std::vector<SourcePtr> sources, KeyKind key_kind,
                std::shared_ptr<const KeyColumn> keys, std::shared_ptr<const DamageList> damage,
                std::vector<Field> fields)
      : sources_(std::move(sources)),
        key_kind_(key_kind),
        keys_(std::move(keys)),
        damage_(std::move(damage)),
        fields_(std::move(fields)),
        stored_{StoredUnit{"", fields_.front().bytes}} {}

  std::uint64_t size() const override { return fields_.front().bytes->size(); }
  const std::vector<Field>& fields() const override { return fields_; }
  const std::vector<StoredUnit>& stored() const override { return stored_; }
  std::vector<SourcePtr> sources() const override { return sources_; }

  KeyKind key_kind() const override { return key_kind_; }
  std::int64_t int_key(std::uint64_t record) const override { return keys_->integer(record); }
  std::string_view text_key(std::uint64_t record) const override { return keys_->text(record); }

  const Damage* damage(std::uint64_t record) const override { return damage_->find(record); }
  std::uint64_t damaged_count() const override { return damage_->size(); }

 private:
  std::vector<SourcePtr> sources_;
  KeyKind key_kind_;
  std::shared_ptr<const KeyColumn> keys_;
  std::shared_ptr<const DamageList> damage_;
  std::vector<Field> fields_;
  std::vector<StoredUnit> stored_;
};

Field bytes_field(std::shared_ptr<const ByteColumn> bytes) {
  Field field;
  field.name = "x";
  field.bytes = std::move(bytes);
  return field;
}

Field typed_field(const char* name, std::shared_ptr<const Column> typed) {
  Field field;
  field.name = name;
  field.typed = std::move(typed);
  return field;
}

}  // namespace

TableBuilder::TableBuilder(SourcePtr source, SourcePtr idx_source, const IdxFile* idx,
                           RecordFramer& framer, OpenContext& context)
    : source_(std::move(source)),
      idx_source_(std::move(idx_source)),
      idx_(idx),
      framer_(framer),
      context_(context),
      found_(RecordioIndex::make(source_)) {
  const std::string kind = context.decode_kind("x");
  demanded_ = kind == kImageRecord;
  if (demanded_) {
    mode_ = Mode::kImages;
  } else if (kind == "raw") {
    mode_ = Mode::kPlain;
  }
}

void TableBuilder::add(const FramedRecord& record, std::span<const IdxEntry> lines) {
  if (mode_ != Mode::kUndecided) {
    append(record, lines);
    return;
  }
  const ImageGuess guess = guess_image(framer_, record);
  held_.push_back({record, std::nullopt, lines});
  if (guess != ImageGuess::kNoImage) {
    decide(guess == ImageGuess::kImage ? Mode::kImages : Mode::kPlain);
  } else if (held_.size() >= kMaxHeld) {
    decide(Mode::kPlain);
  }
}

void TableBuilder::add_damaged(const Damage& damage, std::span<const IdxEntry> lines) {
  if (mode_ != Mode::kUndecided) {
    append_damaged(damage, lines);
    return;
  }
  held_.push_back({{}, damage, lines});
  if (held_.size() >= kMaxHeld) {
    decide(Mode::kPlain);
  }
}

void TableBuilder::decide(Mode mode) {
  mode_ = mode;
  for (const Held& held : std::exchange(held_, {})) {
    if (held.damage) {
      append_damaged(*held.damage, held.lines);
    } else {
      append(held.record, held.lines);
    }
  }
}

void TableBuilder::append(const FramedRecord& record, std::span<const IdxEntry> lines) {
  if (mode_ == Mode::kImages) {
    append_image(record, lines);
    return;
  }
  found_.payloads->append(record.runs, 0, copies(lines));
  append_keys(lines);
}

void TableBuilder::append_image(const FramedRecord& record, std::span<const IdxEntry> lines) {
  std::string why;
  const bool is_header = read_image_header(framer_, record, header_, why);
  if (!demanded_ && (!is_header || record.nbytes == header_.nbytes)) {
    leave_out(record, copies(lines));
    return;
  }
  if (!is_header) {
    append_damaged({corrupt_at(source_->name(), record.runs.front().offset,
                               why + "; the record is damaged or no ImageRecord"),
                    std::nullopt},
                   lines);
    return;
  }
  found_.payloads->append(record.runs, header_.nbytes, copies(lines));
  found_.labels->append(header_.labels, header_.scalar, copies(lines));
  found_.ids->append(std::as_bytes(std::span(&header_.id, 1)), true, copies(lines));
  append_keys(lines);
}

void TableBuilder::append_damaged(const Damage& damage, std::span<const IdxEntry> lines) {
  // The size is the payload's: it says nothing of an image behind a header, nor of labels.
  const auto nbytes = mode_ == Mode::kImages ? std::nullopt : damage.nbytes;
  for (std::uint64_t i = 0; i < copies(lines); ++i) {
    found_.damage->add(found_.payloads->size() + i, damage.error.said(), [&] {
      return Damage{damage.error, nbytes};
    });
  }
  found_.payloads->append_damaged(copies(lines));
  if (mode_ == Mode::kImages) {
    found_.labels->append_damaged(copies(lines));
    found_.ids->append_damaged(copies(lines));
  }
  append_keys(lines);
}

void TableBuilder::append_keys(std::span<const IdxEntry> lines) {
  if (idx_ == nullptr) {
    return;
  }
  for (const IdxEntry& line : lines) {
    if (idx_->integer_keys) {
      found_.keys->append(line.key);
    } else {
      found_.keys->append(idx_->text_key(line));
    }
  }
}

void TableBuilder::leave_out(const FramedRecord& record, std::uint64_t copies) {
  if (left_out_ == 0) {
    first_left_out_ = record.runs.front().offset;
  }
  left_out_ += copies;
}

RecordioIndex TableBuilder::finish() {
  if (mode_ == Mode::kUndecided) {
    decide(Mode::kPlain);
  }
  if (left_out_ > 0) {
    context_.warn(
        fmt::format("{}: {} of {} records hold no image and are left out, the first at "
                    "byte {}; --decode x=imagerecord keeps them",
                    printable(source_->name()), left_out_, left_out_ + found_.payloads->size(),
                    first_left_out_));
  }
  if (mode_ != Mode::kImages) {
    found_.labels = found_.ids = nullptr;
  }
  if (idx_ != nullptr) {
    found_.key_kind = idx_->integer_keys ? KeyKind::kInteger : KeyKind::kText;
  }
  found_.payloads->shrink();
  if (found_.labels != nullptr) {
    found_.labels->shrink();
    found_.ids->shrink();
  }
  found_.keys->shrink();
  found_.damage->shrink();
  return found_;
}

RecordioIndex RecordioIndex::make(const SourcePtr& source) {
  RecordioIndex index;
  index.damage = std::make_shared<DamageList>();
  index.payloads = std::make_shared<PayloadColumn>(source, index.damage);
  index.labels = std::make_shared<ValueColumn>(DType::simple("<f4"), index.damage);
  index.ids = std::make_shared<ValueColumn>(DType::simple("<u8"), index.damage);
  index.keys = std::make_shared<KeyColumn>();
  return index;
}

void RecordioIndex::write(PageWriter& page) const {
  page.number(static_cast<std::uint64_t>(key_kind));
  damage->write(page);
  payloads->write(page);
  page.flag(labels != nullptr);
  if (labels != nullptr) {
    labels->write(page);
    ids->write(page);
  }
  if (key_kind != KeyKind::kNone) {
    keys->write(page);
  }
}

RecordioIndex RecordioIndex::read(PageReader& page, const SourcePtr& source) {
  RecordioIndex index = make(source);
  index.key_kind = static_cast<KeyKind>(page.number(static_cast<std::uint64_t>(KeyKind::kText)));
  *index.damage = DamageList::read(page);
  index.payloads->read(page);
  const std::uint64_t records = index.payloads->size();
  if (page.flag()) {
    index.labels->read(page);
    index.ids->read(page);
    PageReader::require(index.labels->size() == records && index.ids->size() == records);
  } else {
    index.labels = index.ids = nullptr;
  }
  if (index.key_kind != KeyKind::kNone) {
    index.keys->read(page);
    PageReader::require(index.keys->size() == records);
  }
  return index;
}

std::shared_ptr<const RecordTable> make_recordio_table(const RecordioIndex& index,
                                                       std::vector<SourcePtr> sources) {
  std::vector<Field> fields = {bytes_field(index.payloads)};
  if (index.labels != nullptr) {
    fields.push_back(typed_field("y", index.labels));
    fields.push_back(typed_field("id", index.ids));
  }
  return std::make_shared<RecordioTable>(std::move(sources), index.key_kind, index.keys,
                                         index.damage, std::move(fields));
}

}  // namespace npyfs
