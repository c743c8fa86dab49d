// SPDX-License-Identifier: Apache-2.0

#include "formats/arrays/selected_table.h"

#include <algorithm>
#include <utility>

#include "formats/arrays/forwarding_column.h"

namespace npyfs {

namespace {

class SelectedByteColumn : public ByteColumn {
 public:
  SelectedByteColumn(std::shared_ptr<const ByteColumn> base, std::shared_ptr<const Rows> rows)
      : base_(std::move(base)), rows_(std::move(rows)) {}

  std::uint64_t size() const override { return rows_->size(); }
  bool locate(std::uint64_t record, std::vector<Extent>& out) const override {
    return base_->locate((*rows_)[record], out);
  }
  const Damage* damage(std::uint64_t record) const override {
    return base_->damage((*rows_)[record]);
  }
  Guard guard(std::uint64_t record) const override { return base_->guard((*rows_)[record]); }
  std::uint64_t run(std::uint64_t record) const override {
    const std::uint64_t base_run = base_->run((*rows_)[record]);
    return base_run > 1 ? std::min(base_run, rows_->run(record)) : 1;
  }
  std::optional<std::uint64_t> equal_nbytes() const override { return base_->equal_nbytes(); }

 private:
  std::shared_ptr<const ByteColumn> base_;
  std::shared_ptr<const Rows> rows_;
};

class SelectedColumn : public ForwardingColumn {
 public:
  SelectedColumn(std::shared_ptr<const Column> base, std::shared_ptr<const Rows> rows)
      : ForwardingColumn(std::move(base)), rows_(std::move(rows)) {}

  std::uint64_t size() const override { return rows_->size(); }
  std::uint64_t run(std::uint64_t record) const override {
    const std::uint64_t base_run = ForwardingColumn::run(record);
    return base_run > 1 ? std::min(base_run, rows_->run(record)) : 1;
  }
  std::shared_ptr<const Column> converted(const DType& dtype) const override {
    auto converted_base = base().converted(dtype);
    return converted_base == nullptr
               ? nullptr
               : std::make_shared<SelectedColumn>(std::move(converted_base), rows_);
  }

 protected:
  std::uint64_t base_record(std::uint64_t record) const override { return (*rows_)[record]; }

 private:
  std::shared_ptr<const Rows> rows_;
};

class SelectedTable : public RecordTable {
 public:
  SelectedTable(TablePtr base, Rows rows)
      : base_(std::move(base)), rows_(std::make_shared<const Rows>(std::move(rows))) {
    for (Field field : base_->fields()) {
      if (field.bytes != nullptr) {
        field.bytes = std::make_shared<SelectedByteColumn>(field.bytes, rows_);
      }
      if (field.typed != nullptr) {
        field.typed = std::make_shared<SelectedColumn>(field.typed, rows_);
      }
      fields_.push_back(std::move(field));
    }
    for (StoredUnit unit : base_->stored()) {
      unit.bytes = std::make_shared<SelectedByteColumn>(unit.bytes, rows_);
      stored_.push_back(std::move(unit));
    }
    if (base_->damaged_count() > 0) {
      for (std::uint64_t i = 0; i < rows_->size(); ++i) {
        damaged_count_ += base_->damage((*rows_)[i]) != nullptr ? 1 : 0;
      }
    }
  }

  std::uint64_t size() const override { return rows_->size(); }
  const std::vector<Field>& fields() const override { return fields_; }
  const std::vector<StoredUnit>& stored() const override { return stored_; }
  std::vector<SourcePtr> sources() const override { return base_->sources(); }
  KeyKind key_kind() const override { return base_->key_kind(); }
  std::int64_t int_key(std::uint64_t record) const override {
    return base_->int_key((*rows_)[record]);
  }
  std::string_view text_key(std::uint64_t record) const override {
    return base_->text_key((*rows_)[record]);
  }
  const Damage* damage(std::uint64_t record) const override {
    return base_->damage((*rows_)[record]);
  }
  std::uint64_t damaged_count() const override { return damaged_count_; }
  std::optional<Checksum> checksum(std::uint64_t record) const override {
    return base_->checksum((*rows_)[record]);
  }

 private:
  TablePtr base_;
  std::shared_ptr<const Rows> rows_;
  std::uint64_t damaged_count_ = 0;
  std::vector<Field> fields_;
  std::vector<StoredUnit> stored_;
};

}  // namespace

Rows::Rows(std::vector<std::uint64_t> list) : size_(list.size()) {
  std::uint64_t runs = 0;
  for (std::uint64_t row = 0; row < size_; ++row) {
    runs += row == 0 || list[row] != list[row - 1] + 1 ? 1 : 0;
  }
  if (2 * runs > size_) {
    list_ = std::move(list);
    return;
  }
  runs_.reserve(runs);
  for (std::uint64_t row = 0; row < size_; ++row) {
    if (row == 0 || list[row] != list[row - 1] + 1) {
      runs_.push_back({row, list[row]});
    }
  }
}

Rows Rows::without(const std::vector<std::uint64_t>& left_out, std::uint64_t count) {
  Rows rows;
  std::uint64_t begin = 0;
  for (const std::uint64_t record : left_out) {
    rows.add_run(begin, record - begin);
    begin = record + 1;
  }
  rows.add_run(begin, count - begin);
  if (2 * rows.runs_.size() > rows.size_) {
    for (std::uint64_t row = 0; row < rows.size_; ++row) {
      rows.list_.push_back(rows[row]);
    }
    rows.runs_ = {};
  }
  rows.list_.shrink_to_fit();
  rows.runs_.shrink_to_fit();
  return rows;
}

Rows Rows::range(std::uint64_t begin, std::uint64_t end) {
  Rows rows;
  rows.add_run(begin, end - begin);
  return rows;
}

void Rows::add_run(std::uint64_t record, std::uint64_t count) {
  if (count > 0) {
    runs_.push_back({size_, record});
    size_ += count;
  }
}

std::vector<Rows::Run>::const_iterator Rows::run_at(std::uint64_t row) const {
  const auto next =
      std::upper_bound(runs_.begin(), runs_.end(), row,
                       [](std::uint64_t wanted, const Run& run) { return wanted < run.row; });
  return next - 1;
}

std::uint64_t Rows::run(std::uint64_t row) const {
  if (runs_.empty()) {
    return 1;
  }
  const auto next = run_at(row) + 1;
  return (next == runs_.end() ? size_ : next->row) - row;
}

TablePtr select_rows(TablePtr table, Rows rows) {
  if (rows.size() == table->size() && (rows.size() == 0 || rows.run(0) == rows.size())) {
    return table;
  }
  return std::make_shared<SelectedTable>(std::move(table), std::move(rows));
}

TablePtr leave_out(TablePtr table, std::vector<std::uint64_t> left_out) {
  std::sort(left_out.begin(), left_out.end());
  left_out.erase(std::unique(left_out.begin(), left_out.end()), left_out.end());
  const std::uint64_t count = table->size();
  return select_rows(std::move(table), Rows::without(left_out, count));
}

}  // namespace npyfs
