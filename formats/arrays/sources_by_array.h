// SPDX-License-Identifier: Apache-2.0
//
// Which sources of a split make one array, or one member of a join, together.

#pragma once

#include <vector>

#include "formats/arrays/dataset.h"

namespace npyfs {

// Groups the sources by ARRAY (or by having none), in the order of `sources`. Throws kUsage if one
// group has several formats.
std::vector<std::vector<const OpenedSource*>> sources_by_array(
    const std::vector<const OpenedSource*>& sources);

}  // namespace npyfs
