// SPDX-License-Identifier: Apache-2.0
//
// The answer to "which bytes of which thing?": a read of an array as a list of pieces, in order.
// Making it costs no I/O.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "formats/bytes/byte_range.h"
#include "formats/bytes/byte_source.h"
#include "formats/bytes/checksums.h"
#include "formats/bytes/chunk_source.h"
#include "formats/bytes/error.h"

namespace npyfs {

// What a piece points to belongs to the array that planned it, and lives as long.
struct Piece {
  enum class Kind : std::uint8_t {
    kExtent,   // `nbytes` of `source` from `offset`
    kChunk,    // `nbytes` of the decoded chunk `chunk` of `chunks` from `offset`
    kMemory,   // `nbytes` at `memory`
    kFill,     // the `pattern_nbytes` at `memory` over and over, beginning `offset` bytes into it
    kDamaged,  // cannot be read: throw `error`
  };
  Kind kind = Kind::kMemory;
  std::uint32_t pattern_nbytes = 0;
  std::uint64_t nbytes = 0;
  std::uint64_t offset = 0;
  const ByteSource* source = nullptr;
  const ChunkSource* chunks = nullptr;
  std::uint64_t chunk = 0;
  const std::byte* memory = nullptr;
  const Error* error = nullptr;
  Guard guard;
};

// Writes all bytes of a piece that is kFill to `out`.
void fill_piece(const Piece& piece, std::byte* out);

// Collects pieces; those that continue each other become one.
class Plan {
 public:
  // A plan of tiny pieces is made in parts: who plans may stop at a piece's end once it is full.
  static constexpr std::size_t kMostPieces = 4096;
  bool full() const { return pieces_.size() >= kMostPieces; }

  void clear() { pieces_.clear(); }
  const std::vector<Piece>& pieces() const { return pieces_; }
  std::uint64_t nbytes() const;

  void add_extent(const ByteSource& source, std::uint64_t offset, std::uint64_t nbytes,
                  const Guard& guard);
  void add_chunk(const ChunkSource& chunks, std::uint64_t chunk, std::uint64_t offset,
                 std::uint64_t nbytes);
  void add_memory(const std::byte* memory, std::uint64_t nbytes, const Guard& guard = {});
  void add_fill(std::span<const std::byte> pattern, std::uint64_t phase, std::uint64_t nbytes);
  void add_damaged(const Error& error, std::uint64_t nbytes);

 private:
  std::vector<Piece> pieces_;
};

// Appends the pieces of a range of an array, an item, a file, or, once the plan is full, of its
// beginning; nothing behind the end.
using PlanRead = std::function<void(ByteRange range, Plan& plan)>;

}  // namespace npyfs
