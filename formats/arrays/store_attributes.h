// SPDX-License-Identifier: Apache-2.0
//
// The attributes of a data set made of stores: what their roots have.

#pragma once

#include <functional>
#include <string>
#include <vector>

#include "formats/arrays/dataset.h"
#include "formats/bytes/value.h"

namespace npyfs {

// If several stores have an attribute of one name, the first wins, with a warning if values differ.
// Attributes about recordings of rows are concatenated like the rows.
Dict gather_attributes(const std::vector<OpenedSource>& sources,
                       const std::function<void(const std::string&)>& warn);

}  // namespace npyfs
