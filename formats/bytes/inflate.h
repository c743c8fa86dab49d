// SPDX-License-Identifier: Apache-2.0
//
// A gzip or zlib stream as a source of its decoded bytes, with random access: one pass when it is
// opened notes places to start from, afterwards only what is asked for is inflated.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "formats/bytes/byte_range.h"
#include "formats/bytes/byte_source.h"
#include "formats/bytes/chunk_source.h"
#include "formats/bytes/index_page.h"

namespace npyfs {

// Whether `head` begins as a gzip member does (RFC 1952, 2.3): 1f 8b, method 8.
bool is_gzip(std::span<const std::byte> head);

// Whether `head` begins as a zlib stream does (RFC 1950, 2.2). Two bytes of plain data do so by
// chance once in 512 times: ask what they inflate to as well.
bool is_zlib(std::span<const std::byte> head);

// The first `nbytes` decoded bytes of a gzip or zlib stream; fewer where the stream ends before or
// is damaged, none where it is neither. Throws only as ByteSource::read_at.
std::vector<std::byte> inflate_head(const ByteSource& base, std::size_t nbytes);

// Fills `out` with what the raw deflate stream (RFC 1951) in `range` of `base` decodes to. Throws
// kCorrupt where that is damaged, or is more or less.
void inflate_raw(const ByteSource& base, ByteRange range, std::span<std::byte> out);

// The first `nbytes` bytes that it decodes to; fewer where the stream ends before or is damaged.
std::vector<std::byte> inflate_raw_head(const ByteSource& base, ByteRange range,
                                        std::size_t nbytes);

struct InflateOptions {
  // Offer what lies before a damage, with a warning, instead of throwing.
  bool permissive = false;
  // The content carries checksums of its own. Then all that came out before a damage is offered,
  // though the stream's checksum cannot vouch for it; else only the gzip members before.
  bool content_is_checked = false;
  std::function<void(const std::string& text)> warn;
  // Gets all decoded bytes once, in order, while the stream is opened.
  std::function<void(std::span<const std::byte> bytes)> sink;
  // Decoded bytes from one access point to the next. Doubles, dropping every other point, whenever
  // the points would need more memory than `budget_nbytes_per_gib` for each GiB decoded, or than
  // `budget_nbytes`. A whole window (32 KiB, deflated at most 33) every 8 MiB is within the budget:
  // however many files a data set has, their points take in all a 248th of what it decodes to.
  std::uint64_t span_nbytes = std::uint64_t{1} << 20;
  std::uint64_t budget_nbytes_per_gib = std::uint64_t{4224} << 10;
  std::uint64_t budget_nbytes = std::uint64_t{16} << 20;
  // Where the points of undamaged streams are kept: one that was inflated once is not inflated for
  // them again, unless `sink` wants its bytes. Null: nowhere.
  std::shared_ptr<IndexPages> index;
  // Decoded bytes in a cached chunk: as the span, but at most this.
  std::uint64_t chunk_nbytes = std::uint64_t{4} << 20;
};

// The decoded bytes of `base`, a zlib stream or any number of gzip members (zero bytes after the
// last are padding). Inflates everything once, checking CRC-32 and size (Adler-32 for zlib); throws
// kCorrupt naming file and offset where the stream is cut, damaged or followed by something else.
// `cache` must outlive the source.
SourcePtr open_inflated(SourcePtr base, ChunkCache& cache, const InflateOptions& options);

// The same of `base` that is one raw deflate stream (a member of a zip archive), which decodes to
// `nbytes` of this CRC-32. Throws kCorrupt where it does not; never permissive.
SourcePtr open_deflated(SourcePtr base, std::uint64_t nbytes, std::uint32_t crc, ChunkCache& cache,
                        const InflateOptions& options);

}  // namespace npyfs
