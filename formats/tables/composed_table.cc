// SPDX-License-Identifier: Apache-2.0

#include "formats/tables/composed_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace npyfs {

namespace {

// The tables that rows come from. A question about all of them goes only to those that have
// records. Columns that stand alone have no tables: then only their counts are known.
struct Parts {
  std::vector<TablePtr> tables;
  std::vector<std::uint64_t> counts;

  // For messages.
  std::string name(std::size_t part) const {
    return part < tables.size() ? printable(tables[part]->sources().front()->name())
                                : fmt::format("part {}", part);
  }
};

// The columns of all parts, and the map from rows to their records. `Part` is ByteColumn or Column;
// it is null for a part that lacks the field.
template <typename Part>
class Composition {
 public:
  using PartPtr = std::shared_ptr<const Part>;

  Composition(std::shared_ptr<const Parts> parts, std::vector<PartPtr> columns,
              const RecordMap& rows)
      : parts_(std::move(parts)),
        columns_(std::make_shared<const std::vector<PartPtr>>(std::move(columns))),
        rows_(rows) {}

  // The same parts under another map.
  Composition with_rows(const RecordMap& rows) const {
    Composition copy = *this;
    copy.rows_ = rows;
    return copy;
  }

  std::uint64_t size() const { return rows_.size(); }
  const Parts& parts() const { return *parts_; }
  const std::shared_ptr<const Parts>& shared_parts() const { return parts_; }
  const std::vector<PartPtr>& columns() const { return *columns_; }
  const RecordMap& rows() const { return rows_; }

  SourceRecord place(std::uint64_t row) const { return rows_[row]; }
  const Part* column(const SourceRecord& place) const { return (*columns_)[place.source].get(); }

  // How many records from `row` on are one run both in the map and in the part.
  std::uint64_t run(std::uint64_t row) const {
    const RecordMap::Stretch stretch = rows_.stretch(row);
    const Part* part = column(stretch.place);
    return part != nullptr && stretch.count > 1
               ? std::min(stretch.count, part->run(stretch.place.record))
               : 1;
  }

  // Calls visit(part, column) for the parts that have records, while it returns true.
  template <typename Visit>
  void visit(const Visit& visit) const {
    for (std::size_t part = 0; part < columns_->size(); ++part) {
      if (parts_->counts[part] > 0 && !visit(part, (*columns_)[part].get())) {
        return;
      }
    }
  }

 private:
  std::shared_ptr<const Parts> parts_;
  std::shared_ptr<const std::vector<PartPtr>> columns_;
  RecordMap rows_;
};

// The answer of ask(column) if all parts give the same one; else nothing.
template <typename Part, typename Ask, typename Same>
auto common_answer(const Composition<Part>& composition, const Ask& ask, const Same& same) {
  decltype(ask(std::declval<const Part&>())) common;
  composition.visit([&](std::size_t /*part*/, const Part* column) {
    auto answer = column != nullptr ? ask(*column) : std::nullopt;
    const bool agrees = answer && (!common || same(*answer, *common));
    common = agrees ? std::move(answer) : std::nullopt;
    return agrees;
  });
  return common;
}

class ComposedByteColumn : public ByteColumn {
 public:
  explicit ComposedByteColumn(Composition<ByteColumn> composition) : all_(std::move(composition)) {}
  const Composition<ByteColumn>& composition() const { return all_; }

  std::uint64_t size() const override { return all_.size(); }
  bool locate(std::uint64_t record, std::vector<Extent>& out) const override {
    const SourceRecord place = all_.place(record);
    const ByteColumn* part = all_.column(place);
    if (part == nullptr) {
      out.clear();
      return false;
    }
    return part->locate(place.record, out);
  }
  const Damage* damage(std::uint64_t record) const override {
    const SourceRecord place = all_.place(record);
    const ByteColumn* part = all_.column(place);
    return part != nullptr ? part->damage(place.record) : nullptr;
  }
  Guard guard(std::uint64_t record) const override {
    const SourceRecord place = all_.place(record);
    const ByteColumn* part = all_.column(place);
    return part != nullptr ? part->guard(place.record) : Guard{};
  }
  std::uint64_t run(std::uint64_t record) const override { return all_.run(record); }
  std::optional<std::uint64_t> equal_nbytes() const override {
    return common_answer(
        all_, [](const ByteColumn& part) { return part.equal_nbytes(); }, std::equal_to<>());
  }

 private:
  Composition<ByteColumn> all_;
};

// Nothing where the column has no item, or one that is no text.
std::optional<DType> text_type(const Column& column) {
  Item item;
  for (std::uint64_t record = 0; record < column.size(); ++record) {
    item.present = true;
    item.damage = nullptr;
    try {
      column.inspect(record, item);
    } catch (const Error&) {
      continue;  // the survey reports damaged headers
    }
    if (item.present && item.damage == nullptr) {
      return item.dtype.kind == 'U' && item.shape.empty() ? std::optional(item.dtype)
                                                          : std::nullopt;
    }
  }
  return std::nullopt;
}

class ComposedColumn : public Column {
 public:
  explicit ComposedColumn(Composition<Column> composition) : all_(std::move(composition)) {
    // The records of parts that lack a text have an empty one.
    const auto& columns = all_.columns();
    if (std::find(columns.begin(), columns.end(), nullptr) == columns.end()) {
      return;
    }
    for (std::size_t part = 0; part < columns.size() && !text_; ++part) {
      text_ = columns[part] != nullptr ? text_type(*columns[part]) : std::nullopt;
    }
  }
  ComposedColumn(const ComposedColumn& other, const RecordMap& rows)
      : all_(other.all_.with_rows(rows)), text_(other.text_) {}
  const Composition<Column>& composition() const { return all_; }

  std::uint64_t size() const override { return all_.size(); }
  void inspect(std::uint64_t record, Item& item) const override {
    const SourceRecord place = all_.place(record);
    if (const Column* part = all_.column(place)) {
      part->inspect(place.record, item);
      return;
    }
    item.damage = nullptr;
    item.present = text_.has_value();
    if (text_) {
      item.dtype = *text_;
      item.shape.clear();
    }
  }
  std::optional<Item> uniform() const override {
    return common_answer(
        all_, [](const Column& part) { return part.uniform(); },
        [](const Item& a, const Item& b) { return a.dtype == b.dtype && a.shape == b.shape; });
  }
  std::shared_ptr<const Column> converted(const DType& dtype) const override {
    std::vector<std::shared_ptr<const Column>> columns;
    for (const auto& part : all_.columns()) {
      columns.push_back(part != nullptr ? part->converted(dtype) : nullptr);
      if (part != nullptr && columns.back() == nullptr) {
        return nullptr;
      }
    }
    return std::make_shared<ComposedColumn>(
        Composition<Column>(all_.shared_parts(), std::move(columns), all_.rows()));
  }
  bool time_series() const override {
    const auto& columns = all_.columns();
    return std::any_of(columns.begin(), columns.end(),
                       [](const auto& part) { return part != nullptr && part->time_series(); });
  }
  std::optional<std::uint32_t> rate_hz() const override {
    return common_answer(
        all_, [](const Column& part) { return part.rate_hz(); }, std::equal_to<>());
  }
  std::string rate_clash() const override {
    std::string clash;
    std::optional<std::pair<std::size_t, std::uint32_t>> first;
    all_.visit([&](std::size_t number, const Column* part) {
      if (part == nullptr) {
        return true;
      }
      clash = part->rate_clash();
      const auto rate = part->rate_hz();
      if (clash.empty() && rate && first && *rate != first->second) {
        clash =
            fmt::format("those of {} have {} Hz, those of {} have {} Hz", all_.parts().name(number),
                        *rate, all_.parts().name(first->first), first->second);
      }
      if (rate && !first) {
        first = {number, *rate};
      }
      return clash.empty();
    });
    return clash;
  }
  bool decoded(std::uint64_t record) const override {
    const SourceRecord place = all_.place(record);
    const Column* part = all_.column(place);
    return part != nullptr && part->decoded(place.record);
  }
  std::optional<std::uint64_t> text_length(std::uint64_t record,
                                           std::uint64_t known) const override {
    const SourceRecord place = all_.place(record);
    const Column* part = all_.column(place);
    return part != nullptr ? part->text_length(place.record, known) : 0;
  }
  void plan(std::uint64_t record, ByteRange range, Plan& plan) const override {
    const SourceRecord place = all_.place(record);
    if (const Column* part = all_.column(place)) {
      part->plan(place.record, range, plan);
      return;
    }
    static constexpr std::byte kNothing{0};
    plan.add_fill({&kNothing, 1}, 0, range.nbytes());
  }
  void decode(std::uint64_t record, std::span<std::byte> out,
              DecodeContext& context) const override {
    const SourceRecord place = all_.place(record);
    all_.column(place)->decode(place.record, out, context);
  }
  std::uint64_t run(std::uint64_t record) const override { return all_.run(record); }
  std::uint64_t shard_run(std::uint64_t record) const override {
    const RecordMap::Stretch stretch = all_.rows().stretch(record);
    const Column* part = all_.column(stretch.place);
    return part != nullptr ? std::min(stretch.count, part->shard_run(stretch.place.record))
                           : stretch.count;
  }

 private:
  Composition<Column> all_;
  std::optional<DType> text_;  // of the empty texts of parts that lack the field
};

class ComposedTable : public RecordTable {
 public:
  // `rows` are all records of all tables.
  ComposedTable(std::shared_ptr<const Parts> parts, const RecordMap& rows)
      : parts_(std::move(parts)), rows_(rows) {
    for (const TablePtr& table : parts_->tables) {
      damaged_count_ += table->damaged_count();
    }
    find_key_kind();
    if (parts_->tables.size() == 1) {
      wrap_fields();
    } else {
      merge_fields();
      merge_stored();
    }
  }

  // The same tables and fields under another map.
  ComposedTable(const ComposedTable& other, const RecordMap& rows)
      : parts_(other.parts_),
        rows_(rows),
        key_kind_(other.key_kind_),
        fields_(other.fields_),
        stored_(other.stored_) {
    for (Field& field : fields_) {
      if (field.bytes != nullptr) {
        field.bytes = with_rows(*field.bytes);
      }
      if (field.typed != nullptr) {
        field.typed = std::make_shared<ComposedColumn>(
            static_cast<const ComposedColumn&>(*field.typed), rows_);
      }
    }
    for (StoredUnit& unit : stored_) {
      unit.bytes = with_rows(*unit.bytes);
    }
    if (other.damaged_count_ > 0) {
      for (std::uint64_t row = 0; row < rows_.size(); ++row) {
        damaged_count_ += damage(row) != nullptr ? 1 : 0;
      }
    }
  }

  const RecordMap& rows() const { return rows_; }

  std::uint64_t size() const override { return rows_.size(); }
  const std::vector<Field>& fields() const override { return fields_; }
  const std::vector<StoredUnit>& stored() const override { return stored_; }
  std::vector<SourcePtr> sources() const override {
    std::vector<SourcePtr> all;
    for (const TablePtr& table : parts_->tables) {
      const auto some = table->sources();
      all.insert(all.end(), some.begin(), some.end());
    }
    return all;
  }
  KeyKind key_kind() const override { return key_kind_; }
  std::int64_t int_key(std::uint64_t record) const override {
    const SourceRecord place = rows_[record];
    return table(place).int_key(place.record);
  }
  std::string_view text_key(std::uint64_t record) const override {
    const SourceRecord place = rows_[record];
    return table(place).text_key(place.record);
  }
  const Damage* damage(std::uint64_t record) const override {
    const SourceRecord place = rows_[record];
    return table(place).damage(place.record);
  }
  std::uint64_t damaged_count() const override { return damaged_count_; }
  std::vector<std::uint64_t> shard_starts() const override {
    std::vector<std::vector<std::uint64_t>> own;
    for (const TablePtr& table : parts_->tables) {
      own.push_back(table->shard_starts());
    }
    std::vector<std::uint64_t> starts;
    // The shard of the row before: the part, and where in it the shard begins.
    std::optional<SourceRecord> shard;
    for (std::uint64_t row = 0; row < rows_.size();) {
      const auto [place, count] = rows_.stretch(row);
      const std::vector<std::uint64_t>& part = own[place.source];
      const auto behind = std::upper_bound(part.begin(), part.end(), place.record);
      const SourceRecord here{place.source, *(behind - 1)};
      if (shard != here) {
        starts.push_back(row);
        shard = here;
      }
      const std::uint64_t left = behind == part.end() ? count : *behind - place.record;
      row += std::min(count, left);
    }
    return starts;
  }

 private:
  const RecordTable& table(const SourceRecord& place) const {
    return *parts_->tables[place.source];
  }

  std::shared_ptr<const ByteColumn> with_rows(const ByteColumn& column) const {
    return std::make_shared<ComposedByteColumn>(
        static_cast<const ComposedByteColumn&>(column).composition().with_rows(rows_));
  }

  // An empty file has nothing to say about keys and fields, unless it is the only one.
  bool is_silent(std::size_t part) const { return parts_->counts[part] == 0 && rows_.size() > 0; }

  void find_key_kind() {
    std::optional<KeyKind> kind;
    for (std::size_t i = 0; i < parts_->tables.size(); ++i) {
      if (!is_silent(i)) {
        const KeyKind own = parts_->tables[i]->key_kind();
        kind = kind && *kind != own ? KeyKind::kNone : own;
      }
    }
    key_kind_ = kind.value_or(KeyKind::kNone);
  }

  // A single table's fields stay as they are called.
  void wrap_fields() {
    fields_ = parts_->tables.front()->fields();
    stored_ = parts_->tables.front()->stored();
    for (Field& field : fields_) {
      field.bytes =
          field.bytes != nullptr ? compose<ComposedByteColumn>(std::vector{field.bytes}) : nullptr;
      field.typed =
          field.typed != nullptr ? compose<ComposedColumn>(std::vector{field.typed}) : nullptr;
    }
    for (StoredUnit& unit : stored_) {
      unit.bytes = compose<ComposedByteColumn>(std::vector{unit.bytes});
    }
  }

  template <typename Composed, typename Part>
  std::shared_ptr<Composed> compose(std::vector<std::shared_ptr<const Part>> columns) const {
    return std::make_shared<Composed>(Composition<Part>(parts_, std::move(columns), rows_));
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
      // If a table has two of one name, the first wins.
      Found<T>& found = entries[at->second].second;
      if (found.empty() || found.back().first != table) {
        found.emplace_back(table, &what);
      }
    }
  };

  void merge_fields() {
    ByName<Field> fields;
    for (std::size_t i = 0; i < parts_->tables.size(); ++i) {
      if (is_silent(i)) {
        continue;
      }
      for (const Field& field : parts_->tables[i]->fields()) {
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
      no_bytes_in = field->bytes == nullptr ? parts_->tables[i].get() : no_bytes_in;
      no_type_in = field->typed == nullptr ? parts_->tables[i].get() : no_type_in;
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
      merged.bytes = merge_columns<ComposedByteColumn>(found, &Field::bytes);
    }
    if (no_type_in == nullptr) {
      merged.typed = merge_columns<ComposedColumn>(found, &Field::typed);
    }
    return merged;
  }

  void merge_stored() {
    ByName<StoredUnit> units;
    for (std::size_t i = 0; i < parts_->tables.size(); ++i) {
      for (const StoredUnit& unit : parts_->tables[i]->stored()) {
        units.add(unit.extension, i, unit);
      }
    }
    for (const auto& [extension, found] : units.entries) {
      stored_.push_back({extension, merge_columns<ComposedByteColumn>(found, &StoredUnit::bytes)});
    }
  }

  template <typename Composed, typename T, typename Part>
  std::shared_ptr<Composed> merge_columns(const Found<T>& found,
                                          std::shared_ptr<const Part> T::*column) const {
    std::vector<std::shared_ptr<const Part>> columns(parts_->tables.size());
    for (const auto& [part, what] : found) {
      columns[part] = what->*column;
    }
    return compose<Composed>(std::move(columns));
  }

  std::shared_ptr<const Parts> parts_;
  RecordMap rows_;
  KeyKind key_kind_ = KeyKind::kNone;
  std::uint64_t damaged_count_ = 0;
  std::vector<Field> fields_;
  std::vector<StoredUnit> stored_;
};

std::shared_ptr<const ComposedTable> compose_tables(std::vector<TablePtr> tables) {
  auto parts = std::make_shared<Parts>();
  for (const TablePtr& table : tables) {
    parts->counts.push_back(table->size());
  }
  parts->tables = std::move(tables);
  const RecordMap rows = RecordMap::concatenation(parts->counts);
  return std::make_shared<ComposedTable>(std::move(parts), rows);
}

}  // namespace

TablePtr concatenate(std::vector<TablePtr> tables) {
  return tables.size() == 1 ? std::move(tables.front()) : compose_tables(std::move(tables));
}

TablePtr select_rows(TablePtr table, const RecordMap& rows) {
  if (rows.is_all(table->size())) {
    return table;
  }
  auto composed = std::dynamic_pointer_cast<const ComposedTable>(table);
  if (composed == nullptr) {
    composed = compose_tables({std::move(table)});
  }
  return std::make_shared<ComposedTable>(*composed, composed->rows().select(rows));
}

TablePtr leave_out(TablePtr table, std::vector<std::uint64_t> left_out) {
  std::sort(left_out.begin(), left_out.end());
  left_out.erase(std::unique(left_out.begin(), left_out.end()), left_out.end());
  const std::uint64_t count = table->size();
  return select_rows(std::move(table), RecordMap::without(left_out, count));
}

std::shared_ptr<const Column> concatenate_columns(
    std::vector<std::shared_ptr<const Column>> columns) {
  auto parts = std::make_shared<Parts>();
  for (const auto& column : columns) {
    parts->counts.push_back(column->size());
  }
  const RecordMap rows = RecordMap::concatenation(parts->counts);
  return std::make_shared<ComposedColumn>(
      Composition<Column>(std::move(parts), std::move(columns), rows));
}

}  // namespace npyfs
