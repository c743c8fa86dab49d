// SPDX-License-Identifier: Apache-2.0
//
// Recordings of different sample types in one array: which type takes all, as numpy's result_type
// has it, and how samples become it.

#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "formats/bytes/dtype.h"

namespace npyfs {

// The type that takes both; nothing where one is neither integers nor float16 to float64. Types
// that differ in byte order alone become little-endian.
std::optional<DType> promoted_type(const DType& a, const DType& b);

// `in` as samples of `to`, which promoted_type() gave; `out` has room for as many.
void convert_samples(const DType& from, std::span<const std::byte> in, const DType& to,
                     std::span<std::byte> out);

}  // namespace npyfs
