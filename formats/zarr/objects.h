// SPDX-License-Identifier: Apache-2.0
//
// Arrays of texts or bytes of variable length. numcodecs: numcodecs/vlen.pyx. A chunk is a list:
//
//   |count u32|nbytes u32|bytes ...|nbytes u32|bytes ...|
//
// To be shown, texts need the width of the longest, and bytes the place of each: every chunk is
// read once when the store is opened.

#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "formats/opening.h"
#include "formats/store.h"
#include "formats/zarr/array_grid.h"
#include "formats/zarr/metadata.h"

namespace npyfs {

// Makes the grid of an array whose elements are handed on as `element`, shown as `dtype`.
using MakeGrid = std::function<ArrayGrid(const DType& dtype, const Element& element)>;

// A text array, as <U of the longest text; damaged chunks count for nothing, and the user gets a
// line if there are any. Throws kTooLarge and kUnsupported.
StoredArray open_texts(const std::string& name, const std::string& fill, const MakeGrid& make_grid,
                       const OpenContext& context);

// All values one after another in C order, and `<name>_offsets`, where each element's begin.
// Throws kCorrupt where a chunk is damaged, since what follows it has no place then.
std::vector<StoredArray> open_ragged(const std::string& name, const DType& dtype,
                                     const MakeGrid& make_grid, const OpenContext& context);

}  // namespace npyfs
