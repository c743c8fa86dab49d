// SPDX-License-Identifier: Apache-2.0
//
// Arrays of one field: its items stacked, one after another, or padded to one length, in the order
// that a map gives.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "formats/arrays/array.h"
#include "formats/arrays/items.h"
#include "formats/tables/record_map.h"

namespace npyfs {

// Where the rows of each record of a concatenated array begin. Takes 8 bytes a record, or nothing
// if all items have one length or the map is a range. Immutable; any thread.
class Starts {
 public:
  Starts(const Items& items, const RecordMap& map);

  // The number of records, and of all their rows.
  std::uint64_t size() const { return count_; }
  std::uint64_t rows() const { return (*this)[count_]; }
  // `record` may be size().
  std::uint64_t operator[](std::uint64_t record) const {
    return offsets_ == nullptr ? record * equal_rows_
                               : static_cast<std::uint64_t>(begin()[record] - begin()[0]);
  }
  // The record that has `row`, which is below rows().
  std::uint64_t find(std::uint64_t row) const;
  // The same numbers in memory, size() + 1 of them; empty where they are computed.
  std::span<const std::int64_t> stored() const;
  // Keeps what stored() returns.
  const OffsetsPtr& holder() const { return offsets_; }

 private:
  const std::int64_t* begin() const { return offsets_->data() + first_; }

  std::uint64_t count_;
  std::uint64_t equal_rows_ = 0;  // where offsets_ is null
  OffsetsPtr offsets_;
  std::uint64_t first_ = 0;
};

using StartsPtr = std::shared_ptr<const Starts>;

// What an array is made of, so that a view can make it anew under another map.
struct ArrayRecipe {
  enum class Form {
    kStack,    // [N, *shape]
    kConcat,   // [rows of all, *shape[1:]]
    kOffsets,  // int64 [N + 1]: where the rows of each record begin in the kConcat beside it
    kPad,      // [N, most_rows, *shape[1:]]; what an item leaves free is filled with pad_value
    kLengths,  // int64 [N]: the rows of each record
  };
  Form form = Form::kStack;
  ItemsPtr items;
  RecordMap map;                       // from the array's records to the items
  StartsPtr starts{};                  // of kConcat and kOffsets
  std::uint64_t most_rows = 0;         // of kPad
  std::vector<std::byte> pad_value{};  // of kPad: one element as it lies in the file
  // kStack of text only: the width to show, if all texts shown are shorter than the items' dtype.
  std::optional<std::uint64_t> code_points{};
};

// Where the rows of an array that holds items lie in its data: the slot of a row is [begin(row),
// begin(row + 1)). It begins with the row's item; what the item leaves free is padding.
class Slots {
 public:
  // The recipe's form is kStack, kConcat or kPad.
  explicit Slots(const ArrayRecipe& recipe);

  // `row` may be the number of rows.
  std::uint64_t begin(std::uint64_t row) const {
    return (starts_ != nullptr ? (*starts_)[row] : row) * unit_nbytes_;
  }
  // The row whose slot holds this byte of the data.
  std::uint64_t find(std::uint64_t offset) const {
    return starts_ != nullptr ? starts_->find(offset / unit_nbytes_) : offset / unit_nbytes_;
  }
  // Of a row of kConcat, else of a slot.
  std::uint64_t unit_nbytes() const { return unit_nbytes_; }

 private:
  StartsPtr starts_;  // of kConcat, in units
  std::uint64_t unit_nbytes_;
};

// All items, in their order.
ArrayRecipe stacked(ItemsPtr items);

// The rows of the longest item that the map has; 0 for none.
std::uint64_t most_rows(const Items& items, const RecordMap& map);

// Throws kTooLarge where the array exceeds 2^63 bytes.
ArrayPtr make_record_array(const ArrayRecipe& recipe);

// The rows that `map` gives along axis 0 of an array in Fortran order, which stays.
ArrayPtr select_fortran_rows(ArrayPtr array, const RecordMap& map);

// int64 [count], made a block at a time: number i is number_at(i), which any thread may ask for.
ArrayPtr computed_numbers(std::uint64_t count,
                          std::function<std::int64_t(std::uint64_t)> number_at);

}  // namespace npyfs
