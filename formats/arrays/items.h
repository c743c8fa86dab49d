// SPDX-License-Identifier: Apache-2.0
//
// One field of all records, its items laid end to end. The field's arrays are made of them in every
// layout and view. Decoded items are cached in groups that depend on neither, so that a view finds
// in the cache what the plain array has decoded.

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "formats/bytes/chunk_source.h"
#include "formats/damage_list.h"
#include "formats/record_table.h"

namespace npyfs {

// Where the rows of each record begin, then where the last ones end: N + 1 numbers that begin with
// 0 and never fall. They are also the contents of <name>_offsets.npy.
using Offsets = std::vector<std::int64_t>;
using OffsetsPtr = std::shared_ptr<const Offsets>;

// What Items is made from.
struct ItemsOf {
  std::shared_ptr<const Column> column;
  // Keeps alive what the column's guards and damages point to; may be null.
  std::shared_ptr<const RecordTable> table{};
  DType dtype;
  // The shape of one item. With offsets, axis 0 differs from item to item, and a scalar counts as
  // one row.
  Shape shape;
  // Null: no item is damaged.
  std::shared_ptr<const DamageList> damaged{};
  // Null: each item has `shape`.
  OffsetsPtr offsets{};
  // For users, see Array::storage(). Empty: the items tell.
  std::string storage{};
  // How many small items are decoded together, see kGroupRecords.
  std::uint64_t group_records = kGroupRecords;

  // Decoding a small item may mean reading and verifying a large record. 64 labels of 8 bytes still
  // outweigh the bookkeeping of a cached block. If their records have 100 KB each, 64 labels take 6
  // MB of reading; a full block of labels took 800 MB.
  static constexpr std::uint64_t kGroupRecords = 64;
};

// A chunk is a group of neighbouring items. Its number is that of the first one. Immutable; any
// thread.
class Items : public ChunkSource {
 public:
  explicit Items(ItemsOf of);

  std::uint64_t size() const { return of_.column->size(); }
  const DType& dtype() const { return of_.dtype; }
  const Shape& shape() const { return of_.shape; }
  const Column& column() const { return *of_.column; }
  const std::string& storage() const { return of_.storage; }
  const OffsetsPtr& offsets() const { return of_.offsets; }

  // Bytes of one row along axis 0 of an item.
  std::uint64_t row_nbytes() const { return row_nbytes_; }
  // Size of one item, in rows and bytes.
  std::uint64_t rows(std::uint64_t record) const {
    return of_.offsets == nullptr ? equal_rows_ : first_row(record + 1) - first_row(record);
  }
  std::uint64_t nbytes(std::uint64_t record) const { return rows(record) * row_nbytes_; }

  // Null for an item that is not known to be damaged.
  const Damage* damage(std::uint64_t record) const {
    return of_.damaged != nullptr ? of_.damaged->find(record) : nullptr;
  }

  // Plans `range`, which begins in the item and may continue into those that follow. Plans only the
  // items that can be planned as one, at most `most`, and less once the plan is full. Returns the
  // number of items (at least 1).
  std::uint64_t plan(std::uint64_t record, std::uint64_t most, ByteRange range, Plan& plan) const;

  std::uint64_t chunk_nbytes(std::uint64_t chunk) const override;
  void decode(std::uint64_t chunk, std::span<std::byte> out, DecodeContext& context) const override;

 private:
  // Neighbouring items, decoded together: [first, last).
  struct Group {
    std::uint64_t first = 0;
    std::uint64_t last = 0;
  };
  Group group_of(std::uint64_t record) const;
  std::uint64_t first_row(std::uint64_t record) const {
    return of_.offsets == nullptr ? record * equal_rows_
                                  : static_cast<std::uint64_t>((*of_.offsets)[record]);
  }
  std::uint64_t begin(std::uint64_t record) const { return first_row(record) * row_nbytes_; }
  std::uint64_t decoded_run(std::uint64_t record, const Group& group, std::uint64_t most) const;
  std::string find_storage() const;

  ItemsOf of_;
  std::uint64_t row_nbytes_;
  std::uint64_t equal_rows_;  // rows of each item if there are no offsets
};

using ItemsPtr = std::shared_ptr<const Items>;

}  // namespace npyfs
