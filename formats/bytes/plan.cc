// SPDX-License-Identifier: Apache-2.0

#include "formats/bytes/plan.h"

#include <algorithm>
#include <cstring>

namespace npyfs {

namespace {

// Whether `next` continues the records of `before`, possibly beginning inside its last one.
bool continues(const Guard& before, const Guard& next) {
  if (before.checksums != next.checksums) {
    return false;
  }
  const std::uint64_t end = before.first + before.count;
  return next.checksums == nullptr || next.first == end ||
         (next.first + 1 == end && next.count > 0);
}

}  // namespace

void fill_piece(const Piece& piece, std::byte* out) {
  const std::size_t period = piece.pattern_nbytes;
  const auto same = [&](std::size_t i) { return piece.memory[i] == piece.memory[0]; };
  bool uniform = true;
  for (std::size_t i = 1; i < period; ++i) {
    uniform = uniform && same(i);
  }
  if (uniform) {
    std::memset(out, static_cast<int>(piece.memory[0]), piece.nbytes);
    return;
  }
  // One period byte by byte, then what is there over and over, each time twice as much.
  std::uint64_t done = std::min<std::uint64_t>(period, piece.nbytes);
  for (std::uint64_t i = 0; i < done; ++i) {
    out[i] = piece.memory[(piece.offset + i) % period];
  }
  while (done < piece.nbytes) {
    const std::uint64_t more = std::min(done, piece.nbytes - done);
    std::memcpy(out + done, out, more);
    done += more;
  }
}

std::uint64_t Plan::nbytes() const {
  std::uint64_t sum = 0;
  for (const Piece& piece : pieces_) {
    sum += piece.nbytes;
  }
  return sum;
}

void Plan::add_extent(const ByteSource& source, std::uint64_t offset, std::uint64_t nbytes,
                      const Guard& guard) {
  if (nbytes == 0) {
    return;
  }
  if (!pieces_.empty()) {
    Piece& last = pieces_.back();
    if (last.kind == Piece::Kind::kExtent && last.source == &source &&
        last.offset + last.nbytes == offset && continues(last.guard, guard)) {
      last.nbytes += nbytes;
      last.guard.count = guard.first + guard.count - last.guard.first;
      return;
    }
  }
  Piece& piece = pieces_.emplace_back();
  piece.kind = Piece::Kind::kExtent;
  piece.source = &source;
  piece.offset = offset;
  piece.nbytes = nbytes;
  piece.guard = guard;
}

void Plan::add_chunk(const ChunkSource& chunks, std::uint64_t chunk, std::uint64_t offset,
                     std::uint64_t nbytes) {
  if (nbytes == 0) {
    return;
  }
  if (!pieces_.empty()) {
    Piece& last = pieces_.back();
    if (last.kind == Piece::Kind::kChunk && last.chunks == &chunks && last.chunk == chunk &&
        last.offset + last.nbytes == offset) {
      last.nbytes += nbytes;
      return;
    }
  }
  Piece& piece = pieces_.emplace_back();
  piece.kind = Piece::Kind::kChunk;
  piece.chunks = &chunks;
  piece.chunk = chunk;
  piece.offset = offset;
  piece.nbytes = nbytes;
}

void Plan::add_memory(const std::byte* memory, std::uint64_t nbytes, const Guard& guard) {
  if (nbytes == 0) {
    return;
  }
  if (!pieces_.empty()) {
    Piece& last = pieces_.back();
    if (last.kind == Piece::Kind::kMemory && last.memory + last.nbytes == memory &&
        continues(last.guard, guard)) {
      last.nbytes += nbytes;
      last.guard.count = guard.first + guard.count - last.guard.first;
      return;
    }
  }
  Piece& piece = pieces_.emplace_back();
  piece.kind = Piece::Kind::kMemory;
  piece.memory = memory;
  piece.nbytes = nbytes;
  piece.guard = guard;
}

void Plan::add_fill(std::span<const std::byte> pattern, std::uint64_t phase, std::uint64_t nbytes) {
  if (nbytes == 0) {
    return;
  }
  if (!pieces_.empty()) {
    Piece& last = pieces_.back();
    if (last.kind == Piece::Kind::kFill && last.memory == pattern.data() &&
        last.pattern_nbytes == pattern.size() &&
        (last.offset + last.nbytes) % pattern.size() == phase % pattern.size()) {
      last.nbytes += nbytes;
      return;
    }
  }
  Piece& piece = pieces_.emplace_back();
  piece.kind = Piece::Kind::kFill;
  piece.memory = pattern.data();
  piece.pattern_nbytes = static_cast<std::uint32_t>(pattern.size());
  piece.offset = phase % pattern.size();
  piece.nbytes = nbytes;
}

void Plan::add_damaged(const Error& error, std::uint64_t nbytes) {
  if (nbytes == 0) {
    return;
  }
  Piece& piece = pieces_.emplace_back();
  piece.kind = Piece::Kind::kDamaged;
  piece.error = &error;
  piece.nbytes = nbytes;
}

}  // namespace npyfs
