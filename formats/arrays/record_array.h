// SPDX-License-Identifier: Apache-2.0
//
// One field of every record as one array: stacked, padded to one length, or one after another.

#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "formats/arrays/array.h"
#include "formats/damage_list.h"
#include "formats/format.h"

namespace npyfs {

// Where the rows of each record of a concatenated array begin: N + 1 numbers, which are also the
// contents of <name>_offsets.npy.
using Offsets = std::vector<std::int64_t>;

// What all three layouts are made from.
struct RecordItems {
  std::shared_ptr<const Column> column;
  // Keeps alive what the column's guards and damages point to.
  std::shared_ptr<const RecordTable> table;
  DType dtype;
  // Of one item; axis 0 differs from item to item unless they are stacked.
  Shape item_shape;
  std::shared_ptr<const DamageList> damaged;
};

// [N, *item_shape].
ArrayPtr stack_items(const RecordItems& items);

// [sum of rows, *item_shape[1:]].
ArrayPtr concatenate_items(const RecordItems& items, std::shared_ptr<const Offsets> offsets);

// [N, most_rows, *item_shape[1:]]; what an item leaves free is filled with `pad_value`, one element
// as it lies in the file.
ArrayPtr pad_items(const RecordItems& items,
                   std::shared_ptr<const std::vector<std::int64_t>> lengths,
                   std::uint64_t most_rows, std::vector<std::byte> pad_value);

}  // namespace npyfs
