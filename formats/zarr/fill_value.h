// SPDX-License-Identifier: Apache-2.0
//
// What stands where a chunk was never written, as the metadata of either version spells it.

#pragma once

#include <cstddef>
#include <vector>

#include "formats/bytes/dtype.h"
#include "formats/bytes/value.h"

namespace npyfs {

// One element of `dtype`; zeroes for null. Throws kUnsupported for what is no value of the type,
// kTooLarge for a type of more than 16 MiB.
std::vector<std::byte> read_fill_value(const Value& value, const DType& dtype);

}  // namespace npyfs
