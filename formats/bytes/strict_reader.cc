// SPDX-License-Identifier: Apache-2.0

#include "formats/bytes/strict_reader.h"

#include <fmt/format.h>

#include <cstring>

#include "formats/bytes/error.h"

namespace npyfs {

std::shared_ptr<const Block> LastChunkCache::get(const ChunkSource& chunks, std::uint64_t chunk) {
  if (block_ == nullptr || serial_ != chunks.serial() || chunk_ != chunk) {
    const bool is_free = block_ != nullptr && block_.use_count() == 1;
    auto block = is_free ? std::move(block_) : std::make_shared<Block>();
    block_.reset();  // decoding may throw
    decode_block(chunks, chunk, verifier_, *block);
    block_ = std::move(block);
    serial_ = chunks.serial();
    chunk_ = chunk;
  } else {
    block_->require_unchanged();
  }
  return block_;
}

void StrictReader::read(const PlanRead& plan_read, std::uint64_t begin, std::span<std::byte> out) {
  const SourceWatch watch;
  while (!out.empty()) {
    plan_.clear();
    plan_read({begin, begin + out.size()}, plan_);
    const std::uint64_t planned = plan_.nbytes();
    if (planned == 0 || planned > out.size()) {
      throw Error(ErrorKind::kIo, fmt::format("{} bytes are planned, expected 1 to {}; this is an "
                                              "error in npyfs",
                                              planned, out.size()));
    }
    for (const Piece& piece : plan_.pieces()) {
      read_piece(piece, out.first(piece.nbytes));
      out = out.subspan(piece.nbytes);
    }
    begin += planned;
  }
  watch.check_unchanged();
}

void StrictReader::require_good(const ChunkSource& chunks, std::uint64_t chunk) {
  const auto block = cache_.get(chunks, chunk);
  block->require_good({0, block->bytes.size()});
}

void StrictReader::decode(const std::function<void(DecodeContext& context)>& decode) {
  const SourceWatch watch;
  DecodeContext context(verifier_);
  decode(context);
  context.require_good();
  watch.check_unchanged();
}

void StrictReader::read_piece(const Piece& piece, std::span<std::byte> out) {
  switch (piece.kind) {
    case Piece::Kind::kExtent:
      piece.source->read_at(piece.offset, out);
      verifier_.require_intact(piece.guard, {piece.source, piece.offset, out});
      break;
    case Piece::Kind::kChunk: {
      const auto block = cache_.get(*piece.chunks, piece.chunk);
      std::memcpy(out.data(), block->good_bytes({piece.offset, piece.offset + piece.nbytes}),
                  out.size());
      break;
    }
    case Piece::Kind::kMemory:
      verifier_.require_intact(piece.guard);
      std::memcpy(out.data(), piece.memory, out.size());
      break;
    case Piece::Kind::kFill:
      fill_piece(piece, out.data());
      break;
    case Piece::Kind::kDamaged:
      throw Error(*piece.error);
  }
}

}  // namespace npyfs
