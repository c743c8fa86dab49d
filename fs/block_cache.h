// SPDX-License-Identifier: Apache-2.0
//
// Decoded chunks in memory, bounded in bytes, each decoded once however many ask.

#pragma once

#include <cstdint>
#include <memory>

#include "formats/bytes/chunk_source.h"

namespace npyfs {

class VerifiedRecords;

class BlockCache : public ChunkCache {
 public:
  // Holds at most `capacity_nbytes` of decoded bytes, or one block, besides what readers hold just
  // now. `verified` answers the decoders' require_intact and must outlive the cache.
  BlockCache(std::uint64_t capacity_nbytes, VerifiedRecords& verified);
  ~BlockCache() override;

  std::shared_ptr<const Block> get(const ChunkSource& chunks, std::uint64_t chunk) override;
  // Decodes the chunk, unless it is held or somebody is decoding it; throws as get() does.
  void load(const ChunkSource& chunks, std::uint64_t chunk);

  std::uint64_t capacity_nbytes() const;

 private:
  // Null: the caller is to decode it.
  std::shared_ptr<const Block> find_or_wait(const ChunkSource& chunks, std::uint64_t chunk);
  // What is announced already, by find_or_wait or by load.
  std::shared_ptr<const Block> decode(const ChunkSource& chunks, std::uint64_t chunk);

  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace npyfs
