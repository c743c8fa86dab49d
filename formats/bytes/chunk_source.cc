// SPDX-License-Identifier: Apache-2.0

#include "formats/bytes/chunk_source.h"

#include <algorithm>
#include <cstring>

namespace npyfs {

void Block::require_unchanged() const {
  for (const ByteSource* source : sources) {
    source->check_unchanged();
  }
}

void Block::require_good(ByteRange range) const {
  for (const Damage& bad : damage) {
    if (bad.range.begin < range.end && range.begin < bad.range.end) {
      std::rethrow_exception(bad.why);
    }
  }
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
    const std::uint64_t n = std::min<std::uint64_t>(out.size(), block->bytes.size() - within);
    block->require_good({within, within + n});
    std::memcpy(out.data(), block->bytes.data() + within, n);
    offset += n;
    out = out.subspan(n);
  }
}

}  // namespace npyfs
