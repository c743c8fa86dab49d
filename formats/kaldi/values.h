// SPDX-License-Identifier: Apache-2.0
//
// Stored objects become numbers.

#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "formats/kaldi/object.h"
#include "formats/kaldi/text.h"

namespace npyfs {

// Fills `out` with `values` as elements of type To, in the machine's byte order, which is the
// array's. Throws the `fault` where there are not as many as `out` has room for.
template <typename To, typename From>
void store_all(const std::vector<From>& values, std::span<std::byte> out, const MakeFault& fault) {
  if (values.size() != out.size() / sizeof(To)) {
    throw fault("the object is not what it was when it was opened; mount again");
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    const To value = static_cast<To>(values[i]);
    std::memcpy(out.data() + i * sizeof(To), &value, sizeof value);
  }
}

// Decodes a whole matrix or vector, as it is before a range cuts it, row by row; float64 with
// `as_double`, else float32. `stored` is the object from its first byte on. Throws the `fault`
// where it is not what its header was when the table was opened.
void decode_numbers(const Object& object, std::span<const std::byte> stored, bool as_double,
                    std::span<std::byte> out, const MakeFault& fault);

// The elements of a binary number, integer vector, list of lists, pairs or posterior.
ListValues parse_binary_lists(const Object& object, std::string_view stored,
                              const MakeFault& fault);

}  // namespace npyfs
