// SPDX-License-Identifier: Apache-2.0
//
// A table made of some records of another, in an order.

#pragma once

#include <cstdint>
#include <vector>

#include "formats/format.h"

namespace npyfs {

// Which records of a table a view shows, in order. Immutable.
class Rows {
 public:
  explicit Rows(std::vector<std::uint64_t> list);
  // Those below `count` that are not in `left_out` (ascending, each once).
  static Rows without(const std::vector<std::uint64_t>& left_out, std::uint64_t count);

  // Those from `begin` to before `end`.
  static Rows range(std::uint64_t begin, std::uint64_t end);

  std::uint64_t size() const { return size_; }
  std::uint64_t operator[](std::uint64_t row) const {
    return runs_.empty() ? list_[row] : record_in(*run_at(row), row);
  }
  // How many rows from `row` on are known to follow each other in the table; at least 1.
  std::uint64_t run(std::uint64_t row) const;

 private:
  // Rows from `row` on that follow each other in the table from `record` on.
  struct Run {
    std::uint64_t row;
    std::uint64_t record;
  };

  Rows() = default;
  void add_run(std::uint64_t record, std::uint64_t count);
  std::vector<Run>::const_iterator run_at(std::uint64_t row) const;
  static std::uint64_t record_in(const Run& run, std::uint64_t row) {
    return run.record + (row - run.row);
  }

  // One of the two: runs, or where these would take more memory, each record.
  std::vector<Run> runs_;
  std::vector<std::uint64_t> list_;
  std::uint64_t size_ = 0;
};

// The records `rows` of `table`; `table` itself where these are all in its order.
TablePtr select_rows(TablePtr table, Rows rows);

// `table` without the records in `left_out`, in whatever order and however often they stand there.
TablePtr leave_out(TablePtr table, std::vector<std::uint64_t> left_out);

}  // namespace npyfs
