// SPDX-License-Identifier: Apache-2.0
//
// Arrays of chunks as HDF5 stores them: found by their index, decoded by our own codecs.

#pragma once

#include <functional>
#include <memory>
#include <string>

#include "formats/chunk_grid.h"
#include "formats/hdf5/child_process.h"
#include "formats/hdf5/description.h"

namespace npyfs {

// Reads the index at once, and ends the library's search for it at `end`. Where it cannot be read
// at all, every chunk is damaged, with a warning.
std::shared_ptr<const ChunkGrid> make_chunk_reader(
    const ArrayDescription& array, const ChunkedStorage& storage, const Hdf5Process& process,
    Hdf5Process::Clock::time_point end, const std::function<void(const std::string&)>& warn);

}  // namespace npyfs
