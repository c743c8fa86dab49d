// SPDX-License-Identifier: Apache-2.0
//
// Bytes that exist only decoded. Who holds them between reads is not the decoder's business: the
// cache is below `fs/`, formats only get to use it through ChunkCache.

#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "formats/bytes/block_memory.h"
#include "formats/bytes/byte_range.h"
#include "formats/bytes/byte_source.h"
#include "formats/bytes/serial.h"
#include "formats/bytes/verifier.h"

namespace npyfs {

// What cannot be read of decoded bytes, and why.
struct DamagedRange {
  ByteRange range;
  std::exception_ptr why;
};

// What a decoder may ask of, and tell, whoever runs it. One thread at a time.
class DecodeContext {
 public:
  // `verifier` must outlive the context.
  explicit DecodeContext(const Verifier& verifier) : verifier_(verifier) {}

  // Throws kCorrupt for a record of `guard` that does not match its checksum, if that is verified.
  void require_intact(const Guard& guard) { verifier_.require_intact(guard); }

  // `range` of the chunk could not be decoded because of `why`; the rest of the chunk is good.
  void mark_damaged(ByteRange range, std::exception_ptr why) {
    damage_.push_back({range, std::move(why)});
  }

  // Throws the first damage that was marked, if any.
  void require_good() const;
  // All that was marked, in that order.
  std::vector<DamagedRange> take_damage() { return std::move(damage_); }

 private:
  const Verifier& verifier_;
  std::vector<DamagedRange> damage_;
};

// A decoded chunk is held in memory whole: no format decodes larger ones.
inline constexpr std::uint64_t kMostDecodedNbytes = std::uint64_t{2} << 30;

// Numbered chunks, each decoded whole. Immutable; any thread.
class ChunkSource {
 public:
  virtual ~ChunkSource() = default;

  // Identifies it in a cache. A copy is another source.
  std::uint64_t serial() const { return serial_.value(); }

  // Decoded size of a chunk in bytes.
  virtual std::uint64_t chunk_nbytes(std::uint64_t chunk) const = 0;
  // Fills all of `out` (chunk_nbytes long; nobody has zeroed it) but what it marks as damaged. A
  // throw concerns the whole chunk.
  virtual void decode(std::uint64_t chunk, std::span<std::byte> out,
                      DecodeContext& context) const = 0;

 private:
  Serial serial_;
};

// A decoded chunk; what a reader holds cannot vanish.
struct Block {
  BlockBytes bytes;
  std::vector<DamagedRange> damage;  // ascending, disjoint
  // The sources this block was decoded from. A file notices any change of its path. An array of
  // many files notices changes only in files it reads again.
  std::vector<const ByteSource*> sources;

  // How many bytes lie behind `offset`. Throws kIo if there are none: then source and decoder
  // disagree about the block's size.
  std::uint64_t nbytes_from(std::uint64_t offset, const ByteSource& source) const;
  // Throws kChanged if one of `sources` says that it has changed. The block keeps the bytes that
  // were read.
  void require_unchanged() const;
  // Throws the damage that `range` touches, if any.
  void require_good(ByteRange range) const;
  // The bytes of `range`. Throws as require_good().
  const std::byte* good_bytes(ByteRange range) const {
    require_good(range);
    return bytes.data() + range.begin;
  }
};

// Makes `block` the decoded chunk. Throws what decoding throws, kChanged where a source that was
// read has changed.
void decode_block(const ChunkSource& chunks, std::uint64_t chunk, const Verifier& verifier,
                  Block& block);

// A bounded cache of decoded chunks. Any thread.
class ChunkCache {
 public:
  virtual ~ChunkCache() = default;

  // The decoded chunk: decoded once however many ask at the same time. A decoding failure is thrown
  // to all who ask.
  virtual std::shared_ptr<const Block> get(const ChunkSource& chunks, std::uint64_t chunk) = 0;
};

// The concatenation of equal chunks (the last may be shorter) as a source of bytes.
class CachedSource : public ByteSource {
 public:
  // `base` is what the chunks are decoded from: its identity is this source's. `cache` must outlive
  // this source. `access` is what access() says.
  CachedSource(SourcePtr base, std::uint64_t nbytes, std::uint64_t chunk_nbytes,
               std::unique_ptr<const ChunkSource> chunks, ChunkCache& cache,
               std::string access = {});

  Identity identity() const override { return base_->identity(); }
  std::string path() const override { return base_->path(); }
  void check_unchanged() const override { base_->check_unchanged(); }
  bool changed() const override { return base_->changed(); }
  std::string access() const override { return access_; }

 private:
  void do_read(std::uint64_t offset, std::span<std::byte> out) const override;

  SourcePtr base_;
  std::uint64_t chunk_nbytes_;
  std::unique_ptr<const ChunkSource> chunks_;
  ChunkCache& cache_;
  std::string access_;
};

}  // namespace npyfs
