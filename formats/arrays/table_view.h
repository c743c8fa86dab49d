// SPDX-License-Identifier: Apache-2.0
//
// Tables made of tables: several sources one behind the other, or some rows of one in an order.

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "formats/bytes/record_set.h"
#include "formats/format.h"

namespace npyfs {

using TablePtr = std::shared_ptr<const RecordTable>;

// Which records of a table a view shows, in order.
class Rows {
 public:
  explicit Rows(std::vector<std::uint64_t> list) : list_(std::move(list)), is_list_(true) {}
  explicit Rows(RecordSet set) : set_(std::move(set)), is_list_(false) {}

  std::uint64_t size() const { return is_list_ ? list_.size() : set_.size(); }
  std::uint64_t operator[](std::uint64_t index) const {
    return is_list_ ? list_[index] : set_.select(index);
  }
  // How many rows from `index` on follow each other in the table; at least 1.
  std::uint64_t run(std::uint64_t index) const { return is_list_ ? 1 : set_.run(index); }

 private:
  std::vector<std::uint64_t> list_;
  RecordSet set_;
  bool is_list_;
};

// The tables' records in order. Fields are matched by name; a table without a field lacks it in all
// its records. Keys only where all tables (but empty ones) have keys of one kind. One table is
// returned as it is. Throws kUnsupported where a field is bytes here and of known type there.
TablePtr concatenate(std::vector<TablePtr> tables);

// The records `rows` of `table`.
TablePtr select_rows(TablePtr table, Rows rows);

// `table` without the records in `left_out`.
TablePtr leave_out(TablePtr table, const std::vector<std::uint64_t>& left_out);

}  // namespace npyfs
