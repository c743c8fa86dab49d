// SPDX-License-Identifier: Apache-2.0
//
// What a plan stands for, byte by byte and piece by piece: slow and plain, for what is fast to be
// compared with.

#pragma once

#include <algorithm>
#include <cstdint>
#include <exception>
#include <span>
#include <string>
#include <string_view>

#include "formats/arrays/array.h"
#include "formats/bytes/chunk_source.h"
#include "formats/bytes/endian.h"
#include "formats/bytes/verifier.h"
#include "formats/extents.h"

namespace npyfs::testing {

inline std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

inline std::vector<std::byte> bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

// Numbers as they lie in a file.
template <typename T>
std::string packed(const std::vector<T>& values) {
  return text_of(std::as_bytes(std::span(values)));
}

// Verifies record by record, as slowly as that is.
class PlainVerifier : public Verifier {
 public:
  bool verifies() const override { return true; }

 private:
  std::optional<Error> find_fault(const Guard& guard, const ReadWindow& /*window*/) const override {
    for (std::uint64_t i = 0; guard.checksums != nullptr && i < guard.count; ++i) {
      const std::uint64_t record = guard.first + i;
      const auto checksum = guard.checksums->checksum(record);
      if (!checksum) {
        continue;
      }
      std::byte stored[4];
      checksum->stored.source->read_at(checksum->stored.offset, stored);
      if (read_checksum_of(*checksum) != load_le<std::uint32_t>(stored)) {
        return Error(ErrorKind::kCorrupt, guard.checksums->name_of(record) + " fails its checksum");
      }
    }
    return std::nullopt;
  }
};

// Decodes one chunk of anything.
inline Block decode_chunk(const ChunkSource& chunks, std::uint64_t chunk) {
  const PlainVerifier verifier;
  DecodeContext context(verifier);
  Block block;
  block.bytes.resize(chunks.chunk_nbytes(chunk));
  chunks.decode(chunk, block.bytes, context);
  block.damage = context.take_damage();
  return block;
}

// All bytes of the piece. Throws what makes it unreadable.
inline std::string read_piece(const Piece& piece) {
  std::string bytes(piece.nbytes, '\0');
  PlainVerifier().require_intact(piece.guard);
  switch (piece.kind) {
    case Piece::Kind::kExtent:
      piece.source->read_at(piece.offset, std::as_writable_bytes(std::span(bytes)));
      break;
    case Piece::Kind::kChunk: {
      const Block block = decode_chunk(*piece.chunks, piece.chunk);
      block.require_good({piece.offset, piece.offset + piece.nbytes});
      bytes = text_of(std::span(block.bytes).subspan(piece.offset, piece.nbytes));
      break;
    }
    case Piece::Kind::kMemory:
      bytes = text_of({piece.memory, piece.nbytes});
      break;
    case Piece::Kind::kFill:
      for (std::uint64_t i = 0; i < piece.nbytes; ++i) {
        bytes[i] = static_cast<char>(piece.memory[(piece.offset + i) % piece.pattern_nbytes]);
      }
      break;
    case Piece::Kind::kDamaged:
      throw Error(*piece.error);
  }
  return bytes;
}

inline std::string read_plan(const Plan& plan) {
  std::string bytes;
  for (const Piece& piece : plan.pieces()) {
    bytes += read_piece(piece);
  }
  return bytes;
}

inline std::string read_array(const Array& array, ByteRange range) {
  Plan plan;
  array.plan(range, plan);
  return read_plan(plan);
}

inline std::string read_array(const Array& array) { return read_array(array, {0, array.nbytes()}); }

// The same with '?' for every byte that cannot be read.
inline std::string read_what_can_be(const Array& array) {
  std::string bytes;
  for (std::uint64_t i = 0; i < array.nbytes(); ++i) {
    try {
      bytes += read_array(array, {i, i + 1});
    } catch (const Error&) {
      bytes += '?';
    }
  }
  return bytes;
}

}  // namespace npyfs::testing
