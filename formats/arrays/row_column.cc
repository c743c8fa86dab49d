// SPDX-License-Identifier: Apache-2.0

#include "formats/arrays/row_column.h"

#include <algorithm>
#include <utility>

namespace npyfs {

namespace {

class RowColumn : public Column {
 public:
  RowColumn(ArrayPtr array, OffsetsPtr offsets)
      : array_(std::move(array)),
        offsets_(std::move(offsets)),
        row_nbytes_(row_elements(array_->shape()) * array_->dtype().itemsize) {}

  std::uint64_t size() const override {
    return offsets_ != nullptr ? offsets_->size() - 1 : rows();
  }
  void inspect(std::uint64_t record, Item& item) const override {
    const Shape& shape = array_->shape();
    item.present = true;
    item.damage = nullptr;
    item.dtype = array_->dtype();
    item.shape.assign(shape.begin() + (offsets_ != nullptr ? 0 : 1), shape.end());
    if (offsets_ != nullptr) {
      item.shape[0] = begin(record + 1) - begin(record);
    }
  }
  std::optional<Item> uniform() const override {
    if (offsets_ != nullptr) {
      return std::nullopt;
    }
    Item item;
    inspect(0, item);
    return item;
  }
  bool time_series() const override { return offsets_ != nullptr; }
  std::uint64_t run(std::uint64_t record) const override { return size() - record; }
  // A record lies in the shard in which it begins.
  std::uint64_t shard_run(std::uint64_t record) const override {
    const std::uint64_t row = begin(record);
    if (row >= rows()) {
      return size() - record;
    }
    const std::uint64_t run = array_->shard_run(row);
    if (offsets_ == nullptr) {
      return run;
    }
    const auto first = offsets_->begin() + static_cast<std::ptrdiff_t>(record);
    const auto behind =
        std::lower_bound(first + 1, offsets_->end() - 1, static_cast<std::int64_t>(row + run));
    return static_cast<std::uint64_t>(behind - first);
  }
  void plan(std::uint64_t record, ByteRange range, Plan& plan) const override {
    const std::uint64_t at = begin(record) * row_nbytes_;
    array_->plan({at + range.begin, at + range.end}, plan);
  }

 private:
  std::uint64_t rows() const { return array_->shape()[0]; }
  std::uint64_t begin(std::uint64_t record) const {
    return offsets_ != nullptr ? static_cast<std::uint64_t>((*offsets_)[record]) : record;
  }

  ArrayPtr array_;
  OffsetsPtr offsets_;
  std::uint64_t row_nbytes_;
};

class RowTable : public RecordTable {
 public:
  RowTable(std::vector<TableField> fields, std::vector<SourcePtr> sources)
      : sources_(std::move(sources)) {
    for (TableField& named : fields) {
      Field& field = fields_.emplace_back();
      field.name = std::move(named.name);
      field.typed = std::move(named.column);
      field.time_series = field.typed->time_series();
    }
  }

  std::uint64_t size() const override { return fields_.front().typed->size(); }
  const std::vector<Field>& fields() const override { return fields_; }
  const std::vector<StoredUnit>& stored() const override { return stored_; }
  std::vector<SourcePtr> sources() const override { return sources_; }

 private:
  std::vector<Field> fields_;
  std::vector<StoredUnit> stored_;  // none: rows have no bytes of their own
  std::vector<SourcePtr> sources_;
};

}  // namespace

std::shared_ptr<const Column> make_row_column(ArrayPtr array, OffsetsPtr offsets) {
  return std::make_shared<RowColumn>(std::move(array), std::move(offsets));
}

ItemsPtr row_items(const ArrayPtr& array, const OffsetsPtr& offsets) {
  ItemsOf of;
  of.column = make_row_column(array, offsets);
  of.dtype = array->dtype();
  of.shape.assign(array->shape().begin() + (offsets != nullptr ? 0 : 1), array->shape().end());
  of.offsets = offsets;
  of.storage = array->storage();
  return std::make_shared<const Items>(std::move(of));
}

TablePtr make_row_table(std::vector<TableField> fields, std::vector<SourcePtr> sources) {
  return std::make_shared<RowTable>(std::move(fields), std::move(sources));
}

}  // namespace npyfs
