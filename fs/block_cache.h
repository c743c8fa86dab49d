// SPDX-License-Identifier: Apache-2.0
//
// Decoded chunks in memory, bounded in bytes, each decoded once however many ask.

#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "formats/bytes/chunk_source.h"
#include "formats/bytes/verifier.h"

namespace npyfs {

// So many bytes of a chunk have been handed to a reader.
struct ChunkUse {
  const ChunkSource* chunks;
  std::uint64_t chunk;
  std::uint64_t nbytes;
};

// Since the cache was made; of chunks that other chunks are made of, too.
struct CacheCounts {
  std::uint64_t hits = 0;      // asked for and held
  std::uint64_t waits = 0;     // asked for while another thread decoded them
  std::uint64_t loads = 0;     // decoded
  std::uint64_t failures = 0;  // could not be decoded
  std::uint64_t decoded_nbytes = 0;
  std::uint64_t evicted = 0;  // made room for others
  // Begun by load(): all, those that somebody asked for later, those that went before that.
  std::uint64_t ahead_issued = 0;
  std::uint64_t ahead_used = 0;
  std::uint64_t ahead_wasted = 0;
  std::uint64_t held_nbytes = 0;
  std::uint64_t capacity_nbytes = 0;
};

class BlockCache : public ChunkCache {
 public:
  // Holds at most `capacity_nbytes` of decoded bytes, or one block, besides what readers hold just
  // now. `verifier` answers the decoders' require_intact and must outlive the cache.
  BlockCache(std::uint64_t capacity_nbytes, const Verifier& verifier);
  ~BlockCache() override;

  std::shared_ptr<const Block> get(const ChunkSource& chunks, std::uint64_t chunk) override;
  // Decodes the chunk, unless it is held or somebody is decoding it; throws as get() does.
  void load(const ChunkSource& chunks, std::uint64_t chunk);

  // Readers that go through a file in order have taken these. A chunk that they have taken all of
  // is not held for long, since the kernel now has its bytes: its memory is for the chunks ahead of
  // them. Who asks for it at random before it is gone keeps it as any other.
  void note_taken(const std::vector<ChunkUse>& uses);

  // Lets go of what is decoded and known of a source of chunks that is no more.
  void drop(std::uint64_t serial);

  std::uint64_t capacity_nbytes() const;
  CacheCounts counts() const;

  // How often the calling thread has called get(), of any cache, and how often the chunk had to be
  // decoded first, by whomever.
  struct Asked {
    std::uint64_t all = 0;
    std::uint64_t decoded = 0;
  };
  static const Asked& asked_by_this_thread();

 private:
  // Null: the caller is to decode it.
  std::shared_ptr<const Block> find_or_wait(const ChunkSource& chunks, std::uint64_t chunk);
  // What is announced already, by find_or_wait or by load.
  std::shared_ptr<const Block> decode(const ChunkSource& chunks, std::uint64_t chunk);

  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace npyfs
