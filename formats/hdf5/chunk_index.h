// SPDX-License-Identifier: Apache-2.0
//
// The index of the chunks of a data set, read from the file itself: libhdf5 1.10 has no way to list
// many chunks that does not walk the index anew for each.

#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "formats/bytes/byte_source.h"
#include "formats/bytes/dtype.h"
#include "formats/hdf5/chunk_table.h"
#include "formats/hdf5/object_header.h"

namespace npyfs {

// Where to look. Lengths and shapes are along the data set's own axes.
struct ChunkIndexPlace {
  std::uint64_t base = 0;  // what addresses in the file count from
  // Bytes of each address and length in the file.
  StructureWidths widths;
  std::uint64_t header = 0;  // address of the object header
  Shape shape;
  Shape chunk_shape;
  std::uint64_t chunk_nbytes = 0;  // of a chunk without filters
  bool filtered = false;
  StructureChecksums checksums = StructureChecksums::kRequired;
};

// `place` is that of a chunk in the grid of chunks, one number for each axis.
using TakeChunk =
    std::function<void(std::span<const std::uint64_t> place, const StoredChunk& chunk)>;

// An index that takes no space: all chunks that there may ever be, one after another, none of
// them filtered. The address behind the last one is a number of 64 bits, though it may lie behind
// the file's end.
struct ChunkRow {
  std::uint64_t address = 0;  // of the first, the base added
  std::uint32_t nbytes = 0;   // of each
  Shape grid_shape;           // in chunks; they lie in its C order
};

// Hands over every chunk that the index names, in its order; addresses with the base added, not
// checked to lie within the file. Where they lie in a row nothing is handed over, but where that
// is. Reads no byte twice as much as the file has. Throws kCorrupt for a damaged index,
// kUnsupported for one of a kind that is not known here.
std::optional<ChunkRow> read_chunk_index(const ByteSource& source, const ChunkIndexPlace& where,
                                         const TakeChunk& take);

}  // namespace npyfs
