// SPDX-License-Identifier: Apache-2.0
//
// A chunk grid as an array: finds the chunk that holds each stretch of C-order bytes.

#pragma once

#include <memory>

#include "formats/arrays/array.h"
#include "formats/chunk_grid.h"

namespace npyfs {

// A read becomes one piece for each stretch that is contiguous both in the array and in a chunk. If
// chunks span all axes but the first, that is a whole chunk; else a row of one.
ArrayPtr make_chunked_array(std::shared_ptr<const ChunkGrid> grid);

}  // namespace npyfs
