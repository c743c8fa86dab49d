// SPDX-License-Identifier: Apache-2.0

#include "formats/bytes/chunk_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "formats/bytes/error.h"

namespace npyfs {

namespace {

std::uint64_t next_serial() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

}  // namespace

ChunkSource::ChunkSource() : serial_(next_serial()) {}

ChunkSource::ChunkSource(const ChunkSource& /*other*/) : ChunkSource() {}

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
    const std::uint64_t n = std::min<std::uint64_t>(out.size(), block->nbytes_from(within, *this));
    block->require_good({within, within + n});
    std::memcpy(out.data(), block->bytes.data() + within, n);
    offset += n;
    out = out.subspan(n);
  }
}

}  // namespace npyfs
