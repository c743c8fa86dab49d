// SPDX-License-Identifier: Apache-2.0
//
// The keys of records as items, for keys.npy.

#pragma once

#include "formats/arrays/items.h"
#include "formats/record_table.h"

namespace npyfs {

// int64 for integer keys; for text <U as wide as the longest key. Bytes that are not UTF-8 become
// lone surrogates, as Python's surrogateescape makes them. Null for a table without keys.
ItemsPtr key_items(const TablePtr& table);

}  // namespace npyfs
