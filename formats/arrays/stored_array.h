// SPDX-License-Identifier: Apache-2.0
//
// The arrays of a store: a whole .npy file, a chunk grid, or several of them concatenated.

#pragma once

#include <memory>
#include <string>
#include <vector>

#include "formats/arrays/array.h"
#include "formats/arrays/items.h"
#include "formats/record_table.h"
#include "formats/store.h"

namespace npyfs {

// Makes the array. A whole .npy file in Fortran order keeps that order unless it is one of several
// parts or `in_c_order` is set. Throws kUnsupported, naming `name`, if the parts cannot be
// concatenated.
ArrayPtr make_stored_array(const StoredArray& stored, const std::string& name,
                           bool in_c_order = false);

// The .npy file if the array is exactly one; else null.
std::shared_ptr<const StoredNpy> whole_npy(const StoredArray& stored);

// Rows along axis 0, or 1 for an array without axes.
std::uint64_t row_count(const Array& array);

}  // namespace npyfs
