// SPDX-License-Identifier: Apache-2.0
//
// Arrays of Fortran order become arrays of C order.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "formats/bytes/dtype.h"

namespace npyfs {

// Copies an array of Fortran order into C order, element by element; `in` and `out` are of one
// size, that of `shape`.
void transpose(std::span<const std::byte> in, std::span<std::byte> out, const Shape& shape,
               std::uint64_t itemsize);

}  // namespace npyfs
