// SPDX-License-Identifier: Apache-2.0
//
// A table with other fields or keys.

#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "formats/bytes/string_list.h"
#include "formats/record_table.h"

namespace npyfs {

// What is not changed here is the base's.
class TableOverlay : public RecordTable {
 public:
  explicit TableOverlay(TablePtr base) : base_(std::move(base)) {}

  // The changes are made before the table is shared.
  void set_fields(std::vector<Field> fields) { fields_ = std::move(fields); }
  // One for each record.
  void set_text_keys(StringList keys) { text_keys_ = std::move(keys); }
  // Holds `table`, which some of the fields come from; its sources become sources of this one.
  void add_source_table(TablePtr table) { others_.push_back(std::move(table)); }

  std::uint64_t size() const override { return base_->size(); }
  const std::vector<Field>& fields() const override { return fields_ ? *fields_ : base_->fields(); }
  const std::vector<StoredUnit>& stored() const override { return base_->stored(); }
  std::vector<SourcePtr> sources() const override;
  KeyKind key_kind() const override { return text_keys_ ? KeyKind::kText : base_->key_kind(); }
  std::int64_t int_key(std::uint64_t record) const override { return base_->int_key(record); }
  std::string_view text_key(std::uint64_t record) const override {
    return text_keys_ ? (*text_keys_)[record] : base_->text_key(record);
  }
  const Damage* damage(std::uint64_t record) const override { return base_->damage(record); }
  std::uint64_t damaged_count() const override { return base_->damaged_count(); }
  std::vector<std::uint64_t> shard_starts() const override { return base_->shard_starts(); }

 private:
  TablePtr base_;
  std::optional<std::vector<Field>> fields_;
  std::optional<StringList> text_keys_;
  std::vector<TablePtr> others_;
};

}  // namespace npyfs
