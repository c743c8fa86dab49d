// SPDX-License-Identifier: Apache-2.0
//
// The rows of an array as records: one row each, or, in a ragged array, the rows between two
// offsets.

#pragma once

#include <memory>
#include <string>
#include <vector>

#include "formats/arrays/array.h"
#include "formats/arrays/items.h"
#include "formats/record_table.h"

namespace npyfs {

// `array` is in C order and has an axis. Without `offsets`, a record is one row, without axis 0.
// With them, it is the rows between two offsets, which must lie in the array.
std::shared_ptr<const Column> make_row_column(ArrayPtr array, OffsetsPtr offsets = nullptr);
// The same as items, for the arrays of views.
ItemsPtr row_items(const ArrayPtr& array, const OffsetsPtr& offsets = nullptr);

// Columns of one size as the fields of a table, so that they can be joined with the records of
// other sources.
struct TableField {
  std::string name;
  std::shared_ptr<const Column> column;
};
TablePtr make_row_table(std::vector<TableField> fields, std::vector<SourcePtr> sources);

}  // namespace npyfs
