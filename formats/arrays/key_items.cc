// SPDX-License-Identifier: Apache-2.0

#include "formats/arrays/key_items.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "formats/bytes/utf8.h"

namespace npyfs {

namespace {

class KeyColumn : public Column {
 public:
  KeyColumn(TablePtr table, DType dtype) : table_(std::move(table)) {
    item_.dtype = std::move(dtype);
  }

  std::uint64_t size() const override { return table_->size(); }
  void inspect(std::uint64_t /*record*/, Item& item) const override { item = item_; }
  std::optional<Item> uniform() const override { return item_; }
  bool decoded(std::uint64_t /*record*/) const override { return true; }
  void plan(std::uint64_t /*record*/, ByteRange /*range*/, Plan& /*plan*/) const override {}
  void decode(std::uint64_t record, std::span<std::byte> out,
              DecodeContext& /*context*/) const override {
    if (table_->key_kind() == KeyKind::kInteger) {
      const std::int64_t key = table_->int_key(record);
      std::memcpy(out.data(), &key, sizeof key);
    } else {
      write_utf32(table_->text_key(record), out);
    }
  }
  std::optional<std::uint64_t> text_length(std::uint64_t record,
                                           std::uint64_t /*known*/) const override {
    return utf8_length(table_->text_key(record));
  }

 private:
  TablePtr table_;
  Item item_;
};

DType key_dtype(const RecordTable& table) {
  if (table.key_kind() == KeyKind::kInteger) {
    return DType::simple("<i8");
  }
  // numpy has no <U0 in a file: an array of empty strings is <U1.
  std::uint64_t longest = 1;
  for (std::uint64_t record = 0; record < table.size(); ++record) {
    longest = std::max(longest, utf8_length(table.text_key(record)));
  }
  return DType::simple(fmt::format("<U{}", longest));
}

}  // namespace

ItemsPtr key_items(const TablePtr& table) {
  if (table->key_kind() == KeyKind::kNone) {
    return nullptr;
  }
  ItemsOf keys;
  keys.dtype = key_dtype(*table);
  keys.column = std::make_shared<KeyColumn>(table, keys.dtype);
  keys.storage = "computed";
  // Keys cost nothing to read, so a cache block takes as many as it can hold.
  keys.group_records = UINT64_MAX;
  return std::make_shared<const Items>(std::move(keys));
}

}  // namespace npyfs
