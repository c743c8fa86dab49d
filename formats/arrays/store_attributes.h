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

// Of one name in several stores the first one's, with a warning where they differ. What says which
// recordings the rows of a split are from is put together as the rows are.
Dict gather_attributes(const std::vector<OpenedSource>& sources,
                       const std::function<void(const std::string&)>& warn);

}  // namespace npyfs
