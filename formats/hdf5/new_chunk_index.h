// SPDX-License-Identifier: Apache-2.0
//
// The chunk indexes of files written for HDF5 1.10 and later: one chunk, implicit, fixed array,
// extensible array, version 2 B-tree.

#pragma once

#include "formats/hdf5/chunk_index.h"
#include "formats/hdf5/object_header.h"

namespace npyfs {

// `dataspace` is the body of that message, `layout` stands behind the class of a layout message of
// version 4. As read_chunk_index.
std::optional<ChunkRow> read_new_chunk_index(StructureReader& reader, const ChunkIndexPlace& where,
                                             std::span<const std::byte> dataspace,
                                             StructureParser& layout, const TakeChunk& take);

}  // namespace npyfs
