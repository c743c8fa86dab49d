// SPDX-License-Identifier: Apache-2.0
//
// Planned pieces become bytes in memory of the caller. The mount hands bytes over where they lie
// instead (fs/fetch); what a piece stands for and what must be verified is the same for both.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "formats/bytes/chunk_source.h"
#include "formats/bytes/plan.h"
#include "formats/bytes/verifier.h"

namespace npyfs {

// Holds the chunk that was asked for last. One thread.
class LastChunkCache : public ChunkCache {
 public:
  // `verifier` answers the decoders' require_intact and must outlive the cache.
  explicit LastChunkCache(const Verifier& verifier) : verifier_(verifier) {}

  std::shared_ptr<const Block> get(const ChunkSource& chunks, std::uint64_t chunk) override;

 private:
  const Verifier& verifier_;
  std::shared_ptr<Block> block_;
  std::uint64_t serial_ = 0;  // of what block_ is a chunk of
  std::uint64_t chunk_ = 0;
};

// Whatever cannot be read is thrown: kCorrupt for what is damaged or does not match its checksum,
// kChanged where a source has changed when all is read, kIo. One thread.
class StrictReader {
 public:
  // `verifier` must outlive the reader. A chunk is decoded once while pieces of it follow each
  // other.
  explicit StrictReader(const Verifier& verifier)
      : verifier_(verifier), last_chunk_(verifier), cache_(last_chunk_) {}
  // Takes chunks from `cache`, which must outlive the reader.
  StrictReader(const Verifier& verifier, ChunkCache& cache)
      : verifier_(verifier), last_chunk_(verifier), cache_(cache) {}
  StrictReader(const StrictReader&) = delete;
  StrictReader& operator=(const StrictReader&) = delete;

  // Fills `out` with the bytes from `begin` on of what `plan_read` plans.
  void read(const PlanRead& plan_read, std::uint64_t begin, std::span<std::byte> out);
  // Decodes a chunk, and throws what is wrong with any of it.
  void require_good(const ChunkSource& chunks, std::uint64_t chunk);
  // Runs `decode`, which fills memory of its own, in a context of this reader.
  void decode(const std::function<void(DecodeContext& context)>& decode);

 private:
  void read_piece(const Piece& piece, std::span<std::byte> out);

  const Verifier& verifier_;
  LastChunkCache last_chunk_;
  ChunkCache& cache_;
  Plan plan_;
};

}  // namespace npyfs
