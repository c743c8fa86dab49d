// SPDX-License-Identifier: Apache-2.0

#include "formats/tables/join.h"

#include <fmt/format.h>

#include <charconv>
#include <numeric>

#include "formats/bytes/key_order.h"

namespace npyfs {

std::string key_text(const RecordTable& table, std::uint64_t record) {
  switch (table.key_kind()) {
    case KeyKind::kNone:
      break;
    case KeyKind::kInteger:
      return std::to_string(table.int_key(record));
    case KeyKind::kText:
      return std::string(table.text_key(record));
  }
  return std::to_string(record);
}

namespace {

struct IntegerKey {
  const RecordTable* table;
  std::int64_t operator()(std::uint64_t record) const { return table->int_key(record); }
};
struct TextKey {
  const RecordTable* table;
  std::string_view operator()(std::uint64_t record) const { return table->text_key(record); }
};

// A table's records sorted by key.
class TableOrder {
 public:
  explicit TableOrder(const RecordTable& table) {
    if (table.key_kind() == KeyKind::kInteger) {
      integers_.emplace(table.size(), IntegerKey{&table});
    } else {
      texts_.emplace(table.size(), TextKey{&table});
    }
  }

  // A record whose key another has too.
  std::optional<std::uint64_t> duplicate() const {
    return integers_ ? integers_->duplicate() : texts_->duplicate();
  }

  std::optional<std::uint64_t> find(const RecordTable& other, std::uint64_t record) const {
    if (integers_ && other.key_kind() == KeyKind::kInteger) {
      return integers_->find(other.int_key(record));
    }
    const std::string key = key_text(other, record);
    if (texts_) {
      return texts_->find(std::string_view(key));
    }
    std::int64_t number = 0;
    const auto parsed = std::from_chars(key.data(), key.data() + key.size(), number);
    return parsed.ec == std::errc() && std::to_string(number) == key ? integers_->find(number)
                                                                     : std::nullopt;
  }

 private:
  std::optional<KeyOrder<IntegerKey>> integers_;
  std::optional<KeyOrder<TextKey>> texts_;
};

void refuse_duplicate(const TableOrder& order, const RecordTable& table, const std::string& name) {
  if (const auto twice = order.duplicate()) {
    throw file_error(ErrorKind::kCorrupt, name,
                     fmt::format("key {} stands there twice, so that joining by key is ambiguous",
                                 printable(key_text(table, *twice))));
  }
}

}  // namespace

void require_unique_keys(const RecordTable& table, const std::string& name) {
  if (table.key_kind() != KeyKind::kNone) {
    refuse_duplicate(TableOrder(table), table, name);
  }
}

Join join_rows(const RecordTable& first, const RecordTable& joined, const std::string& first_name,
               const std::string& joined_name) {
  Join join;
  join.rows.resize(first.size());
  if (first.key_kind() == KeyKind::kNone || joined.key_kind() == KeyKind::kNone) {
    if (first.size() != joined.size()) {
      throw file_error(ErrorKind::kCorrupt, joined_name,
                       fmt::format("it has {} records, {} has {}; sources without keys are joined "
                                   "row by row and must be equally long",
                                   joined.size(), first_name, first.size()));
    }
    std::iota(join.rows.begin(), join.rows.end(), std::uint64_t{0});
    return join;
  }
  const TableOrder order(joined);
  refuse_duplicate(order, joined, joined_name);
  for (std::uint64_t record = 0; record < first.size(); ++record) {
    if (const auto row = order.find(first, record)) {
      join.rows[record] = *row;
    } else {
      join.missing.push_back(record);
    }
  }
  return join;
}

}  // namespace npyfs
