// SPDX-License-Identifier: Apache-2.0

#include "formats/bytes/chunk_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "formats/bytes/error.h"

namespace npyfs {

void DecodeContext::require_good() const {
  if (!damage_.empty()) {
    std::rethrow_exception(damage_.front().why);
  }
}

void Block::require_unchanged() const {
  for (const ByteSource* source : sources) {
    source->check_unchanged();
  }
}

std::uint64_t Block::nbytes_from(std::uint64_t offset, const ByteSource& source) const {
  if (offset >= bytes.size()) {
    throw file_error(ErrorKind::kIo, source.name(),
                     fmt::format("a decoded chunk has {} bytes, expected more than {}; this is an "
                                 "error in npyfs",
                                 bytes.size(), offset));
  }
  return bytes.size() - offset;
}

void Block::require_good(ByteRange range) const {
  for (const DamagedRange& bad : damage) {
    if (bad.range.begin < range.end && range.begin < bad.range.end) {
      std::rethrow_exception(bad.why);
    }
  }
}

void decode_block(const ChunkSource& chunks, std::uint64_t chunk, const Verifier& verifier,
                  Block& block) {
  const SourceWatch watch;
  block.bytes.resize(chunks.chunk_nbytes(chunk));
  DecodeContext context(verifier);
  chunks.decode(chunk, block.bytes, context);
  watch.check_unchanged();
  block.damage = context.take_damage();
  block.sources = watch.read();
  std::sort(block.sources.begin(), block.sources.end());
  block.sources.erase(std::unique(block.sources.begin(), block.sources.end()), block.sources.end());
}

CachedSource::CachedSource(SourcePtr base, std::uint64_t nbytes, std::uint64_t chunk_nbytes,
                           std::unique_ptr<const ChunkSource> chunks, ChunkCache& cache,
                           std::string access)
    : ByteSource(base->name(), nbytes, base->mtime_ns()),
      base_(std::move(base)),
      chunk_nbytes_(chunk_nbytes),
      chunks_(std::move(chunks)),
      cache_(cache),
      access_(std::move(access)) {}

void CachedSource::do_read(std::uint64_t offset, std::span<std::byte> out) const {
  while (!out.empty()) {
    const std::uint64_t chunk = offset / chunk_nbytes_;
    const std::uint64_t within = offset % chunk_nbytes_;
    const auto block = cache_.get(*chunks_, chunk);
    const std::uint64_t n = std::min<std::uint64_t>(out.size(), block->nbytes_from(within, *this));
    std::memcpy(out.data(), block->good_bytes({within, within + n}), n);
    offset += n;
    out = out.subspan(n);
  }
}

}  // namespace npyfs
