// SPDX-License-Identifier: Apache-2.0
//
// Codecs one after another, as a chunk is stored.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "formats/bytes/block_memory.h"
#include "formats/bytes/codecs/codec.h"

namespace npyfs {

// Immutable once all codecs are added; any thread.
class CodecChain {
 public:
  // In the order of encoding.
  void add(CodecPtr codec) { codecs_.push_back(std::move(codec)); }
  void append(CodecChain more);
  bool empty() const { return codecs_.empty(); }
  // "delta, zlib"; empty for no codec.
  std::string text() const;

  // Decodes `stored` into the whole of `out`. Bit k of `skipped`: the k-th codec was not applied.
  // Throws kCorrupt, without a file's name, where it is damaged or makes another number of bytes.
  void decode(std::span<const std::byte> stored, std::span<std::byte> out,
              std::uint64_t skipped = 0) const;
  // Decodes what may be of any size up to `most_nbytes`. What is allocated is bounded by a multiple
  // of what is really there.
  Buffer decode_any(std::span<const std::byte> stored, std::uint64_t most_nbytes) const;
  // `decoded_nbytes` bytes are stored in no more than this: whoever finds more need not read them.
  std::uint64_t most_stored_nbytes(std::uint64_t decoded_nbytes) const;
  // Exactly how many bytes `decoded_nbytes` are stored in; nothing where that depends on them.
  std::optional<std::uint64_t> stored_nbytes(std::uint64_t decoded_nbytes) const;

 private:
  std::vector<CodecPtr> codecs_;
};

}  // namespace npyfs
