// SPDX-License-Identifier: Apache-2.0
//
// zarr's `sharding_indexed` codec: many inner chunks in one stored chunk, the shard, with an index
// of where each begins.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "formats/bytes/codecs/codec_chain.h"
#include "formats/bytes/dtype.h"

namespace npyfs {

// How shards of one array are built. Axes are as they are stored, behind any transposition.
struct ShardLayout {
  Shape shard_shape;
  Shape inner_shape;
  Shape grid_shape;  // inner chunks along each axis
  std::uint64_t inner_count = 1;
  bool index_first = false;
  CodecChain index_codecs;
  std::uint64_t stored_index_nbytes = 0;
  std::uint64_t element_nbytes = 1;

  // Of the decoded index: an offset and a size for each inner chunk, little-endian.
  std::uint64_t index_nbytes() const { return inner_count * 16; }
  std::uint64_t inner_nbytes() const { return *element_count(inner_shape) * element_nbytes; }
};

// Where the index lies in a shard of `nbytes` bytes. Throws kCorrupt, without a file's name, where
// that is too short for it.
std::uint64_t index_offset(const ShardLayout& layout, std::uint64_t shard_nbytes);

struct InnerPlace {
  std::uint64_t offset = 0;  // from the beginning of the shard
  std::uint64_t nbytes = 0;
};

// The place of inner chunk `number` by the decoded `index`; nothing where it was never written.
// Throws kCorrupt, without a file's name, where it claims to lie behind `shard_nbytes`.
std::optional<InnerPlace> find_inner(std::span<const std::byte> index, std::uint64_t number,
                                     std::uint64_t shard_nbytes);

// Decodes whole shards that are in memory. `fill` is one element.
CodecPtr make_shard_codec(ShardLayout layout, CodecChain inner, std::vector<std::byte> fill);

}  // namespace npyfs
