// SPDX-License-Identifier: Apache-2.0

#include "formats/arrays/pickled_table.h"

#include <utility>
#include <vector>

#include "formats/payloads/payload.h"
#include "formats/payloads/pickle_fields.h"

namespace npyfs {

namespace {

// All but the fields is the table's.
class PickledTable : public RecordTable {
 public:
  PickledTable(TablePtr base, std::vector<Field> fields)
      : base_(std::move(base)), fields_(std::move(fields)) {}

  std::uint64_t size() const override { return base_->size(); }
  const std::vector<Field>& fields() const override { return fields_; }
  const std::vector<StoredUnit>& stored() const override { return base_->stored(); }
  std::vector<SourcePtr> sources() const override { return base_->sources(); }
  KeyKind key_kind() const override { return base_->key_kind(); }
  std::int64_t int_key(std::uint64_t record) const override { return base_->int_key(record); }
  std::string_view text_key(std::uint64_t record) const override { return base_->text_key(record); }
  const Damage* damage(std::uint64_t record) const override { return base_->damage(record); }
  std::uint64_t damaged_count() const override { return base_->damaged_count(); }
  std::optional<Checksum> checksum(std::uint64_t record) const override {
    return base_->checksum(record);
  }

 private:
  TablePtr base_;
  std::vector<Field> fields_;
};

bool wants_pickle(const Field& field, const std::string& name, const FieldChoices& choices) {
  if (field.bytes == nullptr || field.typed != nullptr) {
    return false;
  }
  const auto layout = choices.layout.find(name);
  if (layout != choices.layout.end() && layout->second == Layout::kBytes) {
    return false;
  }
  const auto decode = choices.decode.find(name);
  if (decode != choices.decode.end()) {
    return payload_kind_of(decode->second) == PayloadKind::kPickle;
  }
  const auto first = first_payload(field);
  return first && is_pickled(field, *first);
}

}  // namespace

TablePtr unpack_pickles(TablePtr table, const FieldChoices& choices, const std::string& array,
                        const std::function<void(const std::string&)>& warn) {
  std::vector<Field> fields;
  bool any = false;
  for (const Field& field : table->fields()) {
    const std::string& name = array.empty() || field.name != "x" ? field.name : array;
    auto made =
        wants_pickle(field, name, choices) ? make_pickle_fields(field, *table, warn) : std::nullopt;
    any = any || made;
    if (made) {
      std::move(made->begin(), made->end(), std::back_inserter(fields));
    } else {
      fields.push_back(field);
    }
  }
  return any ? std::make_shared<PickledTable>(std::move(table), std::move(fields)) : table;
}

}  // namespace npyfs
