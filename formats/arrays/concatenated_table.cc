// SPDX-License-Identifier: Apache-2.0

#include "formats/arrays/concatenated_table.h"

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
    tables_ = std::make_shared<const std::vector<TablePtr>>(tables);
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
  // For messages.
  std::string name(std::size_t part) const {
    return printable((*tables_)[part]->sources().front()->name());
  }

 private:
  std::uint64_t begin(std::size_t part) const { return part == 0 ? 0 : (*ends_)[part - 1]; }

  std::shared_ptr<const std::vector<std::uint64_t>> ends_;
  std::shared_ptr<const std::vector<TablePtr>> tables_;
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

// Nothing where the column has no item, or one that is no text.
std::optional<DType> text_type(const Column& column) {
  Item item;
  for (std::uint64_t record = 0; record < column.size(); ++record) {
    item.present = true;
    item.damage = nullptr;
    try {
      column.inspect(record, item);
    } catch (const Error&) {
      continue;  // of damaged headers the survey speaks
    }
    if (item.present && item.damage == nullptr) {
      return item.dtype.kind == 'U' && item.shape.empty() ? std::optional(item.dtype)
                                                          : std::nullopt;
    }
  }
  return std::nullopt;
}

class ConcatColumn : public Column {
 public:
  explicit ConcatColumn(const Starts& starts) : starts_(starts) {}
  void add_part(std::shared_ptr<const Column> part) { parts_.push_back(std::move(part)); }
  // Once all parts are there: the records of those that lack a text have an empty one.
  void finish() {
    if (std::find(parts_.begin(), parts_.end(), nullptr) == parts_.end()) {
      return;
    }
    for (std::size_t part = 0; part < parts_.size() && !text_; ++part) {
      text_ = parts_[part] != nullptr ? text_type(*parts_[part]) : std::nullopt;
    }
  }

  std::uint64_t size() const override { return starts_.size(); }
  void inspect(std::uint64_t record, Item& item) const override {
    const auto at = starts_.find(record);
    if (parts_[at.part] != nullptr) {
      parts_[at.part]->inspect(at.record, item);
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
    all->finish();
    return all;
  }
  bool time_series() const override {
    return std::any_of(parts_.begin(), parts_.end(),
                       [](const auto& part) { return part != nullptr && part->time_series(); });
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
  std::string rate_clash() const override {
    std::optional<std::pair<std::size_t, std::uint32_t>> first;
    for (std::size_t part = 0; part < parts_.size(); ++part) {
      if (parts_[part] == nullptr || starts_.count(part) == 0) {
        continue;
      }
      if (std::string clash = parts_[part]->rate_clash(); !clash.empty()) {
        return clash;
      }
      const auto rate = parts_[part]->rate_hz();
      if (rate && first && *rate != first->second) {
        return fmt::format("those of {} have {} Hz, those of {} have {} Hz", starts_.name(part),
                           *rate, starts_.name(first->first), first->second);
      }
      if (rate && !first) {
        first = {part, *rate};
      }
    }
    return {};
  }
  bool decoded(std::uint64_t record) const override {
    const auto at = starts_.find(record);
    return parts_[at.part] != nullptr && parts_[at.part]->decoded(at.record);
  }
  std::optional<std::uint64_t> text_length(std::uint64_t record,
                                           std::uint64_t known) const override {
    const auto at = starts_.find(record);
    return parts_[at.part] != nullptr ? parts_[at.part]->text_length(at.record, known) : 0;
  }
  void plan(std::uint64_t record, ByteRange range, Plan& plan) const override {
    const auto at = starts_.find(record);
    if (parts_[at.part] == nullptr) {
      static constexpr std::byte kNothing{0};
      plan.add_fill({&kNothing, 1}, 0, range.nbytes());
      return;
    }
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
  std::optional<DType> text_;  // of the empty texts of parts that lack the field
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
      const auto typed = merge_columns<ConcatColumn>(found, &Field::typed);
      typed->finish();
      merged.typed = typed;
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
  std::shared_ptr<Concat> merge_columns(const Found<T>& found, Part T::*column) const {
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

}  // namespace

TablePtr concatenate(std::vector<TablePtr> tables) {
  if (tables.size() == 1) {
    return std::move(tables.front());
  }
  return std::make_shared<ConcatTable>(std::move(tables));
}

}  // namespace npyfs
