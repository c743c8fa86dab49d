// SPDX-License-Identifier: Apache-2.0
//
// Blocks of arrays that come together from the pieces that readers bring, in any order.

#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "formats/bytes/block_memory.h"
#include "kept/kept_array.h"
#include "threads/mutex.h"

namespace npyfs {

struct FullBlock {
  std::shared_ptr<KeptArray> array;
  std::uint64_t block = 0;
  Buffer bytes;
};

// Any thread. Nobody waits here but for a few operations on lists: bytes are copied outside of the
// lock.
class HalfBlocks {
 public:
  // Blocks that are not full yet take at most `most_nbytes` of memory; the one begun first is
  // dropped for another.
  explicit HalfBlocks(std::uint64_t most_nbytes) : most_nbytes_(most_nbytes) {}
  HalfBlocks(const HalfBlocks&) = delete;
  HalfBlocks& operator=(const HalfBlocks&) = delete;

  // Adds bytes of one block, which begin at `offset` of the block. Returns the block where they
  // were the last ones that it lacked. Bytes that are there already are not copied again. Throws
  // std::bad_alloc.
  std::optional<FullBlock> add(const std::shared_ptr<KeptArray>& array, std::uint64_t block,
                               std::uint64_t offset, std::span<const std::byte> bytes);

  // Drops what there is of the array.
  void forget(const KeptArray& array);

  // How many have been dropped.
  std::uint64_t dropped() const;

 private:
  using Key = std::pair<const KeptArray*, std::uint64_t>;
  struct KeyHash {
    std::size_t operator()(const Key& key) const {
      return std::hash<const void*>()(key.first) ^ (key.second * 0x9e3779b97f4a7c15);
    }
  };
  struct Range {
    std::uint64_t begin;
    std::uint64_t end;
  };
  struct Half {
    FullBlock full;
    std::vector<Range> claimed;  // sorted, apart from each other: copied, or being copied
    std::uint64_t copied_nbytes = 0;
    std::uint32_t copying = 0;  // threads: it cannot be dropped
  };
  using Halves = std::list<Half>;

  Halves::iterator find_or_begin(const std::shared_ptr<KeptArray>& array, std::uint64_t block)
      REQUIRES(mutex_);
  bool drop_oldest() REQUIRES(mutex_);
  void drop(Halves::iterator half) REQUIRES(mutex_);
  static std::vector<Range> claim(Half& half, Range range);

  const std::uint64_t most_nbytes_;
  mutable Mutex mutex_;
  Halves halves_ GUARDED_BY(mutex_);  // the one begun first is in front
  std::unordered_map<Key, Halves::iterator, KeyHash> by_key_ GUARDED_BY(mutex_);
  std::uint64_t held_nbytes_ GUARDED_BY(mutex_) = 0;
  std::uint64_t dropped_ GUARDED_BY(mutex_) = 0;
};

}  // namespace npyfs
