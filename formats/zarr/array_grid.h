// SPDX-License-Identifier: Apache-2.0
//
// A zarr array of elements of fixed size as a grid of chunks.

#pragma once

#include <memory>
#include <string>

#include "formats/bytes/chunk_source.h"
#include "formats/chunk_grid.h"
#include "formats/zarr/array_values.h"
#include "formats/zarr/pipeline.h"

namespace npyfs {

struct ArrayParts {
  DType dtype;
  Shape shape;
  Shape stored_shape;  // of a stored chunk
  std::vector<std::byte> fill;
  Pipeline pipeline;
  StoragePtr storage;
  std::int64_t opened_at_ns = 0;  // what its take_time() said
  std::string prefix;
  ChunkKeys keys;
  SourcePtr metadata;
  // How many more chunks of the store what they are may be noted of; fewer afterwards.
  std::uint64_t* notes_left = nullptr;
};

struct ArrayGrid {
  std::shared_ptr<const ChunkGrid> grid;
  SourcePtr source;  // whose changes are the array's
};

// `cache` holds the indices of shards. Throws kTooLarge, naming the limit, where a chunk is too
// large to be decoded.
ArrayGrid make_array_grid(ArrayParts parts, ChunkCache& cache);

}  // namespace npyfs
