// SPDX-License-Identifier: Apache-2.0
//
// Arrays of HDF5 files that are not chunks for our own codecs: read by the child, made of pieces of
// other files or of other arrays.

#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "formats/chunk_grid.h"
#include "formats/hdf5/child_process.h"
#include "formats/hdf5/description.h"
#include "formats/hdf5/patience.h"

namespace npyfs {

// Nothing but the fill value.
std::shared_ptr<const ChunkGrid> make_absent_grid(const ArrayDescription& array);

// Read block by block by the child.
std::shared_ptr<const ChunkGrid> make_library_grid(const ArrayDescription& array,
                                                   const ReadStorage& storage,
                                                   std::shared_ptr<const Hdf5Process> process);

// Extents one after another, as one source. Their owners live as long.
SourcePtr make_joined_source(std::string name, std::vector<std::pair<SourcePtr, ByteRange>> pieces);

// One box of a virtual array and the array it is a box of.
struct VirtualPart {
  std::shared_ptr<const ChunkGrid> grid;
  std::vector<SourcePtr> sources;  // that it reads
  VirtualStorage::Selection here;
  VirtualStorage::Selection there;
};
// What no part covers is the fill value; of parts that overlap the last one counts. Throws
// kUnsupported where a part's boxes do not fit each other or its type is another. Of virtual arrays
// that are parts of others the patience of the one that is read counts.
std::shared_ptr<const ChunkGrid> make_virtual_grid(const ArrayDescription& array,
                                                   std::vector<VirtualPart> parts,
                                                   ChunkCache& cache, Patience patience = {});

}  // namespace npyfs
