// SPDX-License-Identifier: Apache-2.0
//
// What fills the free part of a padded array.

#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "formats/bytes/dtype.h"

namespace npyfs {

// The bytes of one element of the array `name` as they lie in the file. Throws kUsage if `dtype`
// cannot hold the number `text`. Every dtype holds zero.
std::vector<std::byte> pad_element(const std::string& text, const DType& dtype,
                                   const std::string& name);

}  // namespace npyfs
