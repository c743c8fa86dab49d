// SPDX-License-Identifier: Apache-2.0
//
// Arrays that show some records of others, in another order.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "formats/arrays/array.h"
#include "formats/arrays/record_order.h"

namespace npyfs {

// Rows along axis 0 of `array`, which has order's count of them; its Fortran order stays.
ArrayPtr select_array_rows(ArrayPtr array, const RecordOrder& order);

// The same of <U [N], none longer than `code_points`, which are fewer than the array has room for.
ArrayPtr select_text_rows(ArrayPtr array, const RecordOrder& order, std::uint64_t code_points);

// Of an array whose records have differing numbers of rows, which of them are shown and where.
// Immutable; any thread. 8 bytes a record where they are shuffled, else none.
class RaggedOrder {
 public:
  // Record i of the array has the rows offsets[i] to before offsets[i + 1].
  RaggedOrder(std::shared_ptr<const std::vector<std::int64_t>> offsets, const RecordOrder& order);

  const RecordOrder& records() const { return order_; }
  // Where the rows of the record at `place` begin in the array that is shown; `place` may be
  // size().
  std::uint64_t begin(std::uint64_t place) const;
  std::uint64_t rows(std::uint64_t place) const { return begin(place + 1) - begin(place); }
  // Where they begin in the array behind it.
  std::uint64_t source_begin(std::uint64_t place) const;
  // How many records from `place` on lie one behind the other there, too.
  std::uint64_t run(std::uint64_t place) const { return order_.run(place); }
  // The place of the record that has `row`.
  std::uint64_t find(std::uint64_t row) const;
  std::uint64_t most_rows() const;

 private:
  std::shared_ptr<const std::vector<std::int64_t>> offsets_;
  RecordOrder order_;
  std::vector<std::uint64_t> begins_;  // of shuffled records
};

using RaggedOrderPtr = std::shared_ptr<const RaggedOrder>;

// The rows of the records, one record behind the other.
ArrayPtr select_ragged(ArrayPtr array, RaggedOrderPtr order);
// int64 [N + 1]: where each record's rows begin.
ArrayPtr ragged_offsets(RaggedOrderPtr order);
// [N, most_rows, ...]; what a record leaves free is filled with `pad_value`, one element.
ArrayPtr pad_ragged(ArrayPtr array, RaggedOrderPtr order, std::vector<std::byte> pad_value);
// int64 [N]: the rows of each record.
ArrayPtr ragged_lengths(RaggedOrderPtr order);

}  // namespace npyfs
