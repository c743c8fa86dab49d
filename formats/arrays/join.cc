// SPDX-License-Identifier: Apache-2.0

#include "formats/arrays/join.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <numeric>

namespace npyfs {

namespace {

// Integer keys join text keys as the text they print as.
std::string key_text(const RecordTable& table, std::uint64_t record) {
  return table.key_kind() == KeyKind::kInteger ? std::to_string(table.int_key(record))
                                               : std::string(table.text_key(record));
}

// A table's records sorted by key, for binary search: 8 bytes a record.
class KeyOrder {
 public:
  explicit KeyOrder(const RecordTable& table) : table_(table), order_(table.size()) {
    std::iota(order_.begin(), order_.end(), std::uint64_t{0});
    std::sort(order_.begin(), order_.end(), [&](std::uint64_t a, std::uint64_t b) {
      return integers() ? table_.int_key(a) < table_.int_key(b)
                        : table_.text_key(a) < table_.text_key(b);
    });
  }

  // A record whose key another has too.
  std::optional<std::uint64_t> duplicate() const {
    const auto twice =
        std::adjacent_find(order_.begin(), order_.end(), [&](std::uint64_t a, std::uint64_t b) {
          return integers() ? table_.int_key(a) == table_.int_key(b)
                            : table_.text_key(a) == table_.text_key(b);
        });
    return twice != order_.end() ? std::optional(*twice) : std::nullopt;
  }

  std::optional<std::uint64_t> find(const RecordTable& other, std::uint64_t record) const {
    if (integers() && other.key_kind() == KeyKind::kInteger) {
      return find(other.int_key(record));
    }
    const std::string key = key_text(other, record);
    if (integers()) {
      std::int64_t number = 0;
      const auto parsed = std::from_chars(key.data(), key.data() + key.size(), number);
      return parsed.ec == std::errc() && std::to_string(number) == key ? find(number)
                                                                       : std::nullopt;
    }
    const auto at = std::lower_bound(
        order_.begin(), order_.end(), key,
        [&](std::uint64_t row, const std::string& k) { return table_.text_key(row) < k; });
    return at != order_.end() && table_.text_key(*at) == key ? std::optional(*at) : std::nullopt;
  }

 private:
  std::optional<std::uint64_t> find(std::int64_t key) const {
    const auto at = std::lower_bound(
        order_.begin(), order_.end(), key,
        [&](std::uint64_t row, std::int64_t k) { return table_.int_key(row) < k; });
    return at != order_.end() && table_.int_key(*at) == key ? std::optional(*at) : std::nullopt;
  }

  bool integers() const { return table_.key_kind() == KeyKind::kInteger; }

  const RecordTable& table_;
  std::vector<std::uint64_t> order_;
};

void refuse_duplicate(const KeyOrder& order, const RecordTable& table, const std::string& name) {
  if (const auto twice = order.duplicate()) {
    throw file_error(ErrorKind::kCorrupt, name,
                     fmt::format("key {} stands there twice, so that joining by key is ambiguous",
                                 printable(key_text(table, *twice))));
  }
}

}  // namespace

void require_unique_keys(const RecordTable& table, const std::string& name) {
  if (table.key_kind() != KeyKind::kNone) {
    refuse_duplicate(KeyOrder(table), table, name);
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
  const KeyOrder order(joined);
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
