// SPDX-License-Identifier: Apache-2.0
//
// Dense arrays in another order of axes become arrays in C order.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "formats/bytes/dtype.h"

namespace npyfs {

// Immutable; any thread.
class Transposition {
 public:
  // Of what is stored axis k is axis order[k], a permutation, of the array of `shape`. Throws
  // kTooLarge where that has more than 2^63 bytes.
  Transposition(Shape shape, const std::vector<std::size_t>& order, std::uint64_t element_nbytes);

  // Of the array, stored or not.
  std::uint64_t nbytes() const { return nbytes_; }
  // Both are nbytes() long, and do not overlap.
  void apply(std::span<const std::byte> in, std::span<std::byte> out) const;

 private:
  // Of a rows x columns matrix: bytes from one row or column to the next, there and here.
  struct Steps {
    std::uint64_t from_row, from_column, to_row, to_column;
  };
  template <std::size_t kNbytes>
  void copy_tile(const std::byte* from, std::byte* to, const Steps& steps, std::uint64_t rows,
                 std::uint64_t columns) const;
  void copy_tile_of_any(const std::byte* from, std::byte* to, const Steps& steps,
                        std::uint64_t rows, std::uint64_t columns) const;
  void copy_matrix(const std::byte* from, std::byte* to) const;

  Shape shape_;
  std::uint64_t element_nbytes_;
  std::uint64_t nbytes_;
  Shape from_steps_;  // bytes from one element to the next along each axis of shape_
  Shape to_steps_;
  std::size_t row_axis_;
  std::size_t column_axis_;
};

// Copies an array of Fortran order into C order; `in` and `out` are of one size, that of `shape`.
void transpose(std::span<const std::byte> in, std::span<std::byte> out, const Shape& shape,
               std::uint64_t itemsize);

}  // namespace npyfs
