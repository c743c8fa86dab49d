// SPDX-License-Identifier: Apache-2.0
//
// What the kinds of chunk indexes of newer files have in common: how an entry becomes a chunk.

#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "formats/bytes/error.h"
#include "formats/hdf5/chunk_index.h"
#include "formats/hdf5/object_header.h"

namespace npyfs {

inline constexpr std::size_t kChecksumNbytes = 4;
// Signature, version, and what it is of.
inline constexpr std::size_t kPrefixNbytes = 6;

inline std::uint64_t divide_up(std::uint64_t a, std::uint64_t b) {
  return a / b + (a % b != 0 ? 1 : 0);
}

// floor(log2(number)), 0 of 0.
inline unsigned log2_of(std::uint64_t number) {
  return number == 0 ? 0 : static_cast<unsigned>(std::bit_width(number) - 1);
}

// Hands over the chunks of one index. One thread.
class IndexEntries {
 public:
  // All outlive it. `most_shape` is that to which the data set may grow.
  IndexEntries(StructureReader& reader, const ChunkIndexPlace& where, const Shape& most_shape,
               const TakeChunk& take)
      : reader_(reader), where_(where), most_shape_(most_shape), take_(take) {}

  StructureReader& reader() const { return reader_; }
  const ChunkIndexPlace& where() const { return where_; }
  const Shape& most_shape() const { return most_shape_; }
  std::size_t address_nbytes() const { return reader_.widths().address; }
  std::size_t length_nbytes() const { return reader_.widths().length; }
  Error corrupt(std::uint64_t address, std::string_view text) const {
    return reader_.corrupt(address, text);
  }
  // Of a chunk without filters.
  std::uint32_t full_nbytes() const { return static_cast<std::uint32_t>(where_.chunk_nbytes); }

  // Nothing where the address is that of no chunk.
  void hand_over(const Shape& place, std::uint64_t address, StoredChunk chunk) const;
  // The size of the chunk at `address`, a number of `width` bytes. Throws kCorrupt beyond 2^32.
  std::uint32_t take_size(StructureParser& fields, std::size_t width, std::uint64_t address) const;

 private:
  StructureReader& reader_;
  const ChunkIndexPlace& where_;
  const Shape& most_shape_;
  const TakeChunk& take_;
};

}  // namespace npyfs
