// SPDX-License-Identifier: Apache-2.0
//
// The types of zarr's elements, of either version, as numpy's.

#pragma once

#include <cstdint>

#include "formats/bytes/dtype.h"
#include "formats/bytes/value.h"

namespace npyfs {

// What a list of objects holds.
enum class ElementObjects {
  kNone,   // elements of fixed size
  kText,   // UTF-8 of any length
  kBytes,  // bytes of any length, or numbers of `dtype` of any count
};

struct ElementType {
  DType dtype;  // of kText: to be found; of kBytes: of one number, |u1 for bytes
  ElementObjects objects = ElementObjects::kNone;
};

// .zarray's `dtype`. Throws kUnsupported for what numpy does not know. "|O" is kText: which objects
// they are its first filter tells.
ElementType read_type_v2(const Value* value);

// zarr.json's `data_type`, in little-endian numbers.
ElementType read_type_v3(const Value* value);

// The size of the numbers that an element of `dtype` is made of: what has a byte order. 1 for
// bytes, 0 for structured types.
std::uint32_t number_nbytes(const DType& dtype);

}  // namespace npyfs
