// SPDX-License-Identifier: Apache-2.0
//
// What a store holds as arrays: whole .npy files, chunk grids, several of them one behind the
// other.

#pragma once

#include <memory>
#include <string>
#include <vector>

#include "formats/arrays/array.h"
#include "formats/arrays/items.h"
#include "formats/record_table.h"
#include "formats/store.h"

namespace npyfs {

// The array. A whole .npy file of Fortran order stays in it, unless it is one part of
// several or `in_c_order`. Throws
// kUnsupported, with `name` in the text, where its parts cannot be put one behind
// the other.
ArrayPtr make_stored_array(const StoredArray& stored, const std::string& name,
                           bool in_c_order = false);

// The whole .npy file that the array is; null where it is none, or several.
std::shared_ptr<const StoredNpy> whole_npy(const StoredArray& stored);

// Rows along axis 0, or 1 for an array without axes.
std::uint64_t row_count(const Array& array);

}  // namespace npyfs
