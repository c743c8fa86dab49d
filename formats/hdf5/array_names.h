// SPDX-License-Identifier: Apache-2.0
//
// The names of a group's arrays, of which sequences take two.

#pragma once

#include <functional>
#include <string>
#include <vector>

#include "formats/store.h"

namespace npyfs {

// Of the array that says where the sequences of another one begin. It stands directly behind that.
inline constexpr const char* kOffsetsSuffix = "_offsets";

// NAME_offsets beside sequences says where they begin, whatever else the file calls so: that one
// gets another name, of which `warn` gets a line. `file` is for that.
void settle_names(const std::string& file, std::vector<StoredArray>& arrays,
                  const std::function<void(const std::string&)>& warn);

}  // namespace npyfs
