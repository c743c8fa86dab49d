// SPDX-License-Identifier: Apache-2.0
//
// The elements of fixed and extensible arrays: one for each chunk that there may be, in the order
// of their places. HDF5 File Format Specification 3.0, VII (indexes of chunks).

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "formats/hdf5/index_entries.h"

namespace npyfs {

// Numbers the places of chunks as arrays of chunks do: in C order of the shape that the data set
// may grow to, an unlimited axis first.
class PlaceNumbers {
 public:
  PlaceNumbers(const Shape& most, const Shape& chunk_shape, bool unlimited_first);

  const Shape& place_of(std::uint64_t number);

 private:
  std::vector<std::size_t> axes_;
  Shape lengths_;  // in chunks, in the order of axes_
  Shape place_;
};

// One thread.
class ChunkElements {
 public:
  // Elements of `nbytes` each, as the index at `address` says. Throws kCorrupt where they cannot
  // be.
  ChunkElements(const IndexEntries& entries, std::uint64_t nbytes, bool unlimited_first,
                std::uint64_t address);

  // Element `number`: an address, of filtered chunks also a size and a mask.
  void take(StructureParser& fields, std::uint64_t number);
  // A page of `count` elements from `first` on.
  void read_page(std::uint64_t address, std::uint64_t first, std::uint64_t count);

 private:
  const IndexEntries& entries_;
  std::uint64_t nbytes_;
  PlaceNumbers numbers_;
};

// Of a bitmap, in which the first bit of a byte is its highest.
inline bool is_set(std::span<const std::byte> bits, std::uint64_t i) {
  return (std::to_integer<unsigned>(bits[i / 8]) >> (7 - i % 8) & 1) != 0;
}

}  // namespace npyfs
