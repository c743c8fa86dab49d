// SPDX-License-Identifier: Apache-2.0
//
// Arrays made from the index: offsets, lengths, keys.

#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "formats/arrays/array.h"
#include "formats/format.h"

namespace npyfs {

// int64 [numbers->size()], served from the vector itself.
ArrayPtr numbers_array(std::shared_ptr<const std::vector<std::int64_t>> numbers);

// int64 [N] for integer keys, <U [N] as wide as the longest key for text. Bytes that are not UTF-8
// become lone surrogates, as Python's surrogateescape makes them. Null for a table without keys.
ArrayPtr keys_array(std::shared_ptr<const RecordTable> table);

}  // namespace npyfs
