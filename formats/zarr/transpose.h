// SPDX-License-Identifier: Apache-2.0
//
// zarr's `transpose` codec, and order "F" of version 2.

#pragma once

#include <cstdint>
#include <vector>

#include "formats/bytes/codecs/codec.h"
#include "formats/bytes/dtype.h"

namespace npyfs {

// Decodes a dense array whose axis k is axis order[k] of the array of `shape` it stands for.
// `order` is a permutation of the axes.
CodecPtr make_transpose(Shape shape, std::vector<std::size_t> order, std::uint64_t element_nbytes);

// The shape of what is stored.
Shape transposed(const Shape& shape, const std::vector<std::size_t>& order);

}  // namespace npyfs
