// SPDX-License-Identifier: Apache-2.0
//
// A chunk grid as an array: which chunk, and what of it, each stretch of C-order bytes is.

#pragma once

#include <memory>

#include "formats/arrays/array.h"
#include "formats/chunk_grid.h"

namespace npyfs {

// A read becomes one piece for each stretch that is contiguous in the array and in a chunk: the
// whole chunk where chunks span all axes but the first, a row of it where they do not.
ArrayPtr make_chunked_array(std::shared_ptr<const ChunkGrid> grid);

}  // namespace npyfs
