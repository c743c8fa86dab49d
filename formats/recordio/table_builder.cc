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
      payloads_(std::make_shared<PayloadColumn>(source_, damage_)),
      labels_(std::make_shared<ValueColumn>(DType::simple("<f4"), damage_)),
      ids_(std::make_shared<ValueColumn>(DType::simple("<u8"), damage_)) {
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
  payloads_->append(record.runs, 0, copies(lines));
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
  payloads_->append(record.runs, header_.nbytes, copies(lines));
  labels_->append(header_.labels, header_.scalar, copies(lines));
  ids_->append(std::as_bytes(std::span(&header_.id, 1)), true, copies(lines));
  append_keys(lines);
}

void TableBuilder::append_damaged(const Damage& damage, std::span<const IdxEntry> lines) {
  // The size is the payload's: it says nothing of an image behind a header, nor of labels.
  const auto nbytes = mode_ == Mode::kImages ? std::nullopt : damage.nbytes;
  for (std::uint64_t i = 0; i < copies(lines); ++i) {
    damage_->add(payloads_->size() + i, damage.error.said(), [&] {
      return Damage{damage.error, nbytes};
    });
  }
  payloads_->append_damaged(copies(lines));
  if (mode_ == Mode::kImages) {
    labels_->append_damaged(copies(lines));
    ids_->append_damaged(copies(lines));
  }
  append_keys(lines);
}

void TableBuilder::append_keys(std::span<const IdxEntry> lines) {
  if (idx_ == nullptr) {
    return;
  }
  for (const IdxEntry& line : lines) {
    if (idx_->integer_keys) {
      keys_->append(line.key);
    } else {
      keys_->append(idx_->text_key(line));
    }
  }
}

void TableBuilder::leave_out(const FramedRecord& record, std::uint64_t copies) {
  if (left_out_ == 0) {
    first_left_out_ = record.runs.front().offset;
  }
  left_out_ += copies;
}

std::shared_ptr<const RecordTable> TableBuilder::finish() {
  if (mode_ == Mode::kUndecided) {
    decide(Mode::kPlain);
  }
  if (left_out_ > 0) {
    context_.warn(fmt::format(
        "{}: {} of {} records hold no image and are left out, the first at "
        "byte {}; --decode x=imagerecord keeps them",
        printable(source_->name()), left_out_, left_out_ + payloads_->size(), first_left_out_));
  }
  payloads_->shrink();
  labels_->shrink();
  ids_->shrink();
  keys_->shrink();
  damage_->shrink();
  std::vector<Field> fields = {bytes_field(payloads_)};
  if (mode_ == Mode::kImages) {
    fields.push_back(typed_field("y", labels_));
    fields.push_back(typed_field("id", ids_));
  }
  std::vector<SourcePtr> sources = {source_};
  KeyKind key_kind = KeyKind::kNone;
  if (idx_ != nullptr) {
    sources.push_back(idx_source_);
    key_kind = idx_->integer_keys ? KeyKind::kInteger : KeyKind::kText;
  }
  return std::make_shared<RecordioTable>(std::move(sources), key_kind, keys_, damage_,
                                         std::move(fields));
}

}  // namespace npyfs
