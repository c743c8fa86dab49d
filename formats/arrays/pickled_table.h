// SPDX-License-Identifier: Apache-2.0
//
// A table of pickled samples becomes one of the fields that are in them.

#pragma once

#include <functional>
#include <string>

#include "formats/arrays/dataset.h"
#include "formats/record_table.h"

namespace npyfs {

// Replaces the pickled samples of `table` by their fields. Returns `table` itself if it has none,
// or if the user wants their bytes. In a join, `array` is the main field's name in choices; else
// empty.
TablePtr unpack_pickles(TablePtr table, const FieldChoices& choices, const std::string& array,
                        const std::function<void(const std::string&)>& warn);

}  // namespace npyfs
