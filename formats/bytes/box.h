// SPDX-License-Identifier: Apache-2.0
//
// Rectangular parts of dense arrays.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "formats/bytes/dtype.h"

namespace npyfs {

// Bytes from one element of a dense array in C order to the next along each axis.
Shape strides_of(const Shape& shape, std::uint64_t itemsize);

// Where the first element of a box is, and bytes from one to the next along each axis.
template <typename Byte>
struct Strided {
  Byte* first;
  const Shape& strides;
};

// Copies a box of `extent` elements of `itemsize` bytes, which lie in two arrays.
void copy_strided(Strided<const std::byte> from, Strided<std::byte> to, const Shape& extent,
                  std::uint64_t itemsize);

// A dense array in C order.
template <typename Byte>
struct Dense {
  Byte* bytes;
  const Shape& shape;
};

// Copies the `extent` elements of `itemsize` bytes that begin at `from_begin` of `from` to those
// that begin at `to_begin` of `to`. Both lie within their arrays.
void copy_box(Dense<const std::byte> from, const Shape& from_begin, Dense<std::byte> to,
              const Shape& to_begin, const Shape& extent, std::uint64_t itemsize);

// Fills `out` with `element` over and over.
void fill_elements(std::span<std::byte> out, std::span<const std::byte> element);

// Fills a box of `extent` elements with `element`.
void fill_strided(Strided<std::byte> to, const Shape& extent, std::span<const std::byte> element);

// Goes on to the next place within `extent`, in C order; false behind the last, when `place` is
// all 0 again.
bool advance(Shape& place, const Shape& extent);

}  // namespace npyfs
