// SPDX-License-Identifier: Apache-2.0
//
// A compressed file as a source of its decoded bytes, for any format: decoded once when it is
// opened, which checks every checksum that it has, afterwards as little as its kind allows.

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "formats/bytes/byte_source.h"
#include "formats/bytes/chunk_source.h"
#include "formats/bytes/index_page.h"
#include "formats/bytes/packings/frame_reader.h"
#include "formats/bytes/packings/packing_table.h"
#include "formats/bytes/paused_decoders.h"
#include "formats/bytes/spool.h"

namespace npyfs {

// What the compressed shards of a data set share.
struct UnpackPool {
  // What the cache holds at most. An eighth of it may be decoded in one go.
  std::uint64_t cache_nbytes = 0;
  // Where all that is decoded is kept; null: nowhere.
  std::shared_ptr<Spool> spool;
  // Where decoders of large frames wait for the next read: together they take what may be decoded
  // in one go.
  std::shared_ptr<PausedDecoders> paused = std::make_shared<PausedDecoders>();
  // The user has been told what reads without a spool cost.
  bool told_cost = false;
};

struct UnpackOptions {
  // Offer what lies before a damage, with a warning, instead of throwing.
  bool permissive = false;
  std::function<void(const std::string& text)> warn;
  // As of InflateOptions.
  std::shared_ptr<IndexPages> index;
  std::shared_ptr<UnpackPool> pool = std::make_shared<UnpackPool>();
};

// The decoded bytes of `base`, which is packed (find_packing). gzip is entered at access points,
// zstd at frames, xz at blocks, bzip2 at streams, lz4 at frames and their independent blocks; a
// frame that is larger than may be decoded in one go is decoded from its start for every read,
// which is said once. Throws kCorrupt naming file and offset where the stream is cut, damaged or
// followed by something else, kTooLarge where it decodes to more than any data does, kUnsupported
// where it is of a kind that is not read. `cache` must outlive the source.
SourcePtr open_unpacked(SourcePtr base, ChunkCache& cache, const UnpackOptions& options);

}  // namespace npyfs
