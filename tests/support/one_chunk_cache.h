// SPDX-License-Identifier: Apache-2.0
//
// A cache of one chunk, for tests that want nearly every read to decode.

#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>

#include "formats/bytes/chunk_source.h"

namespace npyfs::testing {

class OneChunkCache : public ChunkCache {
 public:
  std::shared_ptr<const Block> get(const ChunkSource& chunks, std::uint64_t chunk) override {
    if (block_ == nullptr || chunks.serial() != serial_ || chunk != chunk_) {
      auto block = std::make_shared<Block>();
      decode_block(chunks, chunk, trusting_verifier(), *block);
      largest_nbytes_ = std::max<std::uint64_t>(largest_nbytes_, block->bytes.size());
      ++decoded_;
      block_ = block;
      serial_ = chunks.serial();
      chunk_ = chunk;
    }
    return block_;
  }
  std::uint64_t largest_nbytes() const { return largest_nbytes_; }
  std::uint64_t decoded() const { return decoded_; }

 private:
  std::shared_ptr<const Block> block_;
  std::uint64_t serial_ = 0;
  std::uint64_t chunk_ = 0;
  std::uint64_t largest_nbytes_ = 0;
  std::uint64_t decoded_ = 0;
};

}  // namespace npyfs::testing
