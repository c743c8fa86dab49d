// SPDX-License-Identifier: Apache-2.0

#include "formats/arrays/table_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace npyfs {

namespace {

// Where the records of each part begin; empty parts are skipped by the search. Copies share.
class Starts {
 public:
  explicit Starts(const std::vector<TablePtr>& tables) {
    std::vector<std::uint64_t> ends;
    ends.reserve(tables.size());
    for (const TablePtr& table : tables) {
      ends.push_back((ends.empty() ? 0 : ends.back()) + table->size());
    }
    ends_ = std::make_shared<const std::vector<std::uint64_t>>(std::move(ends));
  }
  std::uint64_t size() const { return ends_->empty() ? 0 : ends_->back(); }

  struct Place {
    std::size_t part;
    std::uint64_t record;
  };
  Place find(std::uint64_t record) const {
    const auto end = std::upper_bound(ends_->begin(), ends_->end(), record);
    const auto part = static_cast<std::size_t>(end - ends_->begin());
    return {part, record - begin(part)};
  }
  std::uint64_t count(std::size_t part) const { return (*ends_)[part] - begin(part); }

 private:
  std::uint64_t begin(std::size_t part) const { return part == 0 ? 0 : (*ends_)[part - 1]; }

  std::shared_ptr<const std::vector<std::uint64_t>> ends_;
};

class ConcatByteColumn : public ByteColumn {
 public:
  explicit ConcatByteColumn(const Starts& starts) : starts_(starts) {}
  void add_part(std::shared_ptr<const ByteColumn> part) { parts_.push_back(std::move(part)); }

  std::uint64_t size() const override { return starts_.size(); }
  bool locate(std::uint64_t record, std::vector<Extent>& out) const override {
    const auto at = starts_.find(record);
    if (parts_[at.part] == nullptr) {
      out.clear();
      return false;
    }
    return parts_[at.part]->locate(at.record, out);
  }
  const Damage* damage(std::uint64_t record) const override {
    const auto at = starts_.find(record);
    return parts_[at.part] != nullptr ? parts_[at.part]->damage(at.record) : nullptr;
  }
  Guard guard(std::uint64_t record) const override {
    const auto at = starts_.find(record);
    return parts_[at.part] != nullptr ? parts_[at.part]->guard(at.record) : Guard{};
  }
  std::uint64_t run(std::uint64_t record) const override {
    const auto at = starts_.find(record);
    return parts_[at.part] != nullptr ? parts_[at.part]->run(at.record) : 1;
  }
  std::optional<std::uint64_t> equal_nbytes() const override {
    std::optional<std::uint64_t> common;
    for (std::size_t part = 0; part < parts_.size(); ++part) {
      if (starts_.count(part) == 0) {
        continue;
      }
      const auto nbytes = parts_[part] ? parts_[part]->equal_nbytes() : std::nullopt;
      if (!nbytes || (common && *common != *nbytes)) {
        return std::nullopt;
      }
      common = nbytes;
    }
    return common;
  }

 private:
  Starts starts_;
  std::vector<std::shared_ptr<const ByteColumn>> parts_;
};

class ConcatColumn : public Column {
 public:
  explicit ConcatColumn(const Starts& starts) : starts_(starts) {}
  void add_part(std::shared_ptr<const Column> part) { parts_.push_back(std::move(part)); }

  std::uint64_t size() const override { return starts_.size(); }
  void inspect(std::uint64_t record, Item& item) const override {
    const auto at = starts_.find(record);
    if (parts_[at.part] == nullptr) {
      item.present = false;
      item.damage = nullptr;
      return;
    }
    parts_[at.part]->inspect(at.record, item);
  }
  std::optional<Item> uniform() const override {
    std::optional<Item> common;
    for (std::size_t part = 0; part < parts_.size(); ++part) {
      if (starts_.count(part) == 0) {
        continue;
      }
      auto item = parts_[part] ? parts_[part]->uniform() : std::nullopt;
      if (!item || (common && (item->dtype != common->dtype || item->shape != common->shape))) {
        return std::nullopt;
      }
      common = std::move(item);
    }
    return common;
  }
  std::shared_ptr<const Column> converted(const DType& dtype) const override {
    auto all = std::make_shared<ConcatColumn>(starts_);
    for (const auto& part : parts_) {
      all->add_part(part != nullptr ? part->converted(dtype) : nullptr);
      if (part != nullptr && all->parts_.back() == nullptr) {
        return nullptr;
      }
    }
    return all;
  }
  std::optional<std::uint32_t> rate_hz() const override {
    std::optional<std::uint32_t> common;
    for (std::size_t part = 0; part < parts_.size(); ++part) {
      const auto rate = parts_[part] != nullptr ? parts_[part]->rate_hz() : std::nullopt;
      if (starts_.count(part) == 0) {
        continue;
      }
      if (!rate || (common && *common != *rate)) {
        return std::nullopt;
      }
      common = rate;
    }
    return common;
  }
  bool decoded(std::uint64_t record) const override {
    const auto at = starts_.find(record);
    return parts_[at.part] != nullptr && parts_[at.part]->decoded(at.record);
  }
  std::optional<std::uint64_t> text_length(std::uint64_t record) const override {
    const auto at = starts_.find(record);
    return parts_[at.part] != nullptr ? parts_[at.part]->text_length(at.record) : 0;
  }
  void plan(std::uint64_t record, ByteRange range, Plan& plan) const override {
    const auto at = starts_.find(record);
    parts_[at.part]->plan(at.record, range, plan);
  }
  void decode(std::uint64_t record, std::span<std::byte> out,
              DecodeContext& context) const override {
    const auto at = starts_.find(record);
    parts_[at.part]->decode(at.record, out, context);
  }
  std::uint64_t run(std::uint64_t record) const override {
    const auto at = starts_.find(record);
    return parts_[at.part] != nullptr ? parts_[at.part]->run(at.record) : 1;
  }

 private:
  Starts starts_;
  std::vector<std::shared_ptr<const Column>> parts_;
};

class ConcatTable : public RecordTable {
 public:
  explicit ConcatTable(std::vector<TablePtr> tables)
      : tables_(std::move(tables)), starts_(tables_) {
    for (const TablePtr& table : tables_) {
      damaged_count_ += table->damaged_count();
    }
    find_key_kind();
    merge_fields();
    merge_stored();
  }

  std::uint64_t size() const override { return starts_.size(); }
  const std::vector<Field>& fields() const override { return fields_; }
  const std::vector<StoredUnit>& stored() const override { return stored_; }
  std::vector<SourcePtr> sources() const override {
    std::vector<SourcePtr> all;
    for (const TablePtr& table : tables_) {
      const auto some = table->sources();
      all.insert(all.end(), some.begin(), some.end());
    }
    return all;
  }
  KeyKind key_kind() const override { return key_kind_; }
  std::int64_t int_key(std::uint64_t record) const override {
    const auto at = starts_.find(record);
    return tables_[at.part]->int_key(at.record);
  }
  std::string_view text_key(std::uint64_t record) const override {
    const auto at = starts_.find(record);
    return tables_[at.part]->text_key(at.record);
  }
  const Damage* damage(std::uint64_t record) const override {
    const auto at = starts_.find(record);
    return tables_[at.part]->damage(at.record);
  }
  std::uint64_t damaged_count() const override { return damaged_count_; }
  std::optional<Checksum> checksum(std::uint64_t record) const override {
    const auto at = starts_.find(record);
    return tables_[at.part]->checksum(at.record);
  }

 private:
  void find_key_kind() {
    bool first = true;
    for (const TablePtr& table : tables_) {
      if (table->size() == 0 && starts_.size() > 0) {
        continue;
      }
      if (first) {
        key_kind_ = table->key_kind();
        first = false;
      } else if (key_kind_ != table->key_kind()) {
        key_kind_ = KeyKind::kNone;
      }
    }
  }

  // What the tables have under one name: where in tables_, ascending, and what.
  template <typename T>
  using Found = std::vector<std::pair<std::size_t, const T*>>;

  // Names in the order in which they were met first, each with what was found.
  template <typename T>
  struct ByName {
    std::vector<std::pair<std::string, Found<T>>> entries;
    std::unordered_map<std::string_view, std::size_t> index;  // of what the tables hold

    void add(const std::string& name, std::size_t table, const T& what) {
      const auto [at, is_new] = index.emplace(name, entries.size());
      if (is_new) {
        entries.emplace_back(name, Found<T>());
      }
      // Of two of one name in one table the first counts.
      Found<T>& found = entries[at->second].second;
      if (found.empty() || found.back().first != table) {
        found.emplace_back(table, &what);
      }
    }
  };

  void merge_fields() {
    ByName<Field> fields;
    for (std::size_t i = 0; i < tables_.size(); ++i) {
      // An empty file has nothing to say about fields, unless it is the only one.
      if (tables_[i]->size() == 0 && starts_.size() > 0) {
        continue;
      }
      for (const Field& field : tables_[i]->fields()) {
        fields.add(field.bid ? field.bid->otherwise : field.name, i, field);
      }
    }
    for (const auto& [name, found] : fields.entries) {
      fields_.push_back(merge_field(name, found));
    }
    settle_bids(fields_);
  }

  Field merge_field(const std::string& name, const Found<Field>& found) const {
    Field merged;
    merged.name = name;
    // Tables whose field lacks a stored form, or a type.
    const RecordTable* no_bytes_in = nullptr;
    const RecordTable* no_type_in = nullptr;
    for (const auto& [i, field] : found) {
      no_bytes_in = field->bytes == nullptr ? tables_[i].get() : no_bytes_in;
      no_type_in = field->typed == nullptr ? tables_[i].get() : no_type_in;
      merged.companion |= field->companion;
      merged.time_series |= field->time_series;
      merged.sparse |= field->sparse;
      merged.maybe_pickled |= field->maybe_pickled;
      // Where they differ the bytes must tell.
      if (field == found.front().second) {
        merged.extension = field->extension;
        merged.bid = field->bid;
      } else if (merged.extension != field->extension) {
        merged.extension.clear();
      }
    }
    if (no_bytes_in != nullptr && no_type_in != nullptr) {
      throw file_error(
          ErrorKind::kUnsupported, no_bytes_in->sources().front()->name(),
          fmt::format("its field {} is of known type, in {} it is bytes; --decode {}=raw takes the "
                      "bytes of both",
                      name, no_type_in->sources().front()->name(), name));
    }
    if (no_bytes_in == nullptr) {
      merged.bytes = merge_columns<ConcatByteColumn>(found, &Field::bytes);
    }
    if (no_type_in == nullptr) {
      merged.typed = merge_columns<ConcatColumn>(found, &Field::typed);
    }
    return merged;
  }

  void merge_stored() {
    ByName<StoredUnit> units;
    for (std::size_t i = 0; i < tables_.size(); ++i) {
      for (const StoredUnit& unit : tables_[i]->stored()) {
        units.add(unit.extension, i, unit);
      }
    }
    for (const auto& [extension, found] : units.entries) {
      stored_.push_back({extension, merge_columns<ConcatByteColumn>(found, &StoredUnit::bytes)});
    }
  }

  template <typename Concat, typename T, typename Part>
  std::shared_ptr<const Concat> merge_columns(const Found<T>& found, Part T::*column) const {
    auto merged = std::make_shared<Concat>(starts_);
    auto next = found.begin();
    for (std::size_t i = 0; i < tables_.size(); ++i) {
      const bool has = next != found.end() && next->first == i;
      merged->add_part(has ? (next++)->second->*column : nullptr);
    }
    return merged;
  }

  std::vector<TablePtr> tables_;
  Starts starts_;
  KeyKind key_kind_ = KeyKind::kNone;
  std::uint64_t damaged_count_ = 0;
  std::vector<Field> fields_;
  std::vector<StoredUnit> stored_;
};

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

class SelectedColumn : public Column {
 public:
  SelectedColumn(std::shared_ptr<const Column> base, std::shared_ptr<const Rows> rows)
      : base_(std::move(base)), rows_(std::move(rows)) {}

  std::uint64_t size() const override { return rows_->size(); }
  void inspect(std::uint64_t record, Item& item) const override {
    base_->inspect((*rows_)[record], item);
  }
  std::optional<Item> uniform() const override { return base_->uniform(); }
  bool time_series() const override { return base_->time_series(); }
  std::shared_ptr<const Column> converted(const DType& dtype) const override {
    auto base = base_->converted(dtype);
    return base == nullptr ? nullptr : std::make_shared<SelectedColumn>(std::move(base), rows_);
  }
  std::optional<std::uint32_t> rate_hz() const override { return base_->rate_hz(); }
  bool decoded(std::uint64_t record) const override { return base_->decoded((*rows_)[record]); }
  std::optional<std::uint64_t> text_length(std::uint64_t record) const override {
    return base_->text_length((*rows_)[record]);
  }
  void plan(std::uint64_t record, ByteRange range, Plan& plan) const override {
    base_->plan((*rows_)[record], range, plan);
  }
  void decode(std::uint64_t record, std::span<std::byte> out,
              DecodeContext& context) const override {
    base_->decode((*rows_)[record], out, context);
  }
  std::uint64_t run(std::uint64_t record) const override {
    const std::uint64_t base_run = base_->run((*rows_)[record]);
    return base_run > 1 ? std::min(base_run, rows_->run(record)) : 1;
  }

 private:
  std::shared_ptr<const Column> base_;
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

TablePtr concatenate(std::vector<TablePtr> tables) {
  if (tables.size() == 1) {
    return std::move(tables.front());
  }
  return std::make_shared<ConcatTable>(std::move(tables));
}

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
