// SPDX-License-Identifier: Apache-2.0
//
// A table of pickled samples becomes one of the fields that are in them.

#pragma once

#include <functional>
#include <string>

#include "formats/arrays/dataset.h"
#include "formats/record_table.h"

namespace npyfs {

// `table` with the fields of its pickled samples in place of the samples; `table` itself where it
// has none, or where the user wants their bytes. `array` is what choices call the main field in a
// join, else empty.
TablePtr unpack_pickles(TablePtr table, const FieldChoices& choices, const std::string& array,
                        const std::function<void(const std::string&)>& warn);

}  // namespace npyfs
