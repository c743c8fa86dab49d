// SPDX-License-Identifier: Apache-2.0
//
// Shuffled orders that are computed, not stored. fs/SEMANTICS.md gives the same functions in
// Python.

#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace npyfs {

// Where each shard of a split begins, ascending from 0.
using ShardStarts = std::shared_ptr<const std::vector<std::uint64_t>>;

// The user's words for a shuffle.
struct Shuffle {
  std::uint64_t seed = 0;
  std::uint64_t epoch = 0;
  // Permutes blocks of so many records, then the records of each block; 0: all records at once.
  std::uint64_t block = 0;
  // The shards are the blocks.
  bool by_shard = false;

  // The seed of this epoch: the user's in epoch 0.
  std::uint64_t epoch_seed() const;
};

// A bijection of [0, count) by a Feistel network. Takes no memory. Immutable; any thread.
class Bijection {
 public:
  Bijection(std::uint64_t count, std::uint64_t seed);

  std::uint64_t count() const { return count_; }
  // The number at `place`, which is below count().
  std::uint64_t operator[](std::uint64_t place) const;
  // The place of `number`, which is below count().
  std::uint64_t place_of(std::uint64_t number) const;

 private:
  std::uint64_t step(std::uint64_t place) const;
  std::uint64_t step_back(std::uint64_t place) const;

  static constexpr unsigned kRounds = 6;

  std::uint64_t count_;
  unsigned half_bits_;
  std::array<std::uint64_t, kRounds> keys_;
};

// The order of `count` records under a Shuffle. Takes no memory for records; 16 bytes for each
// shard where shards are the blocks. Immutable; any thread.
class Permutation {
 public:
  // `shards` is asked for only where shuffle.by_shard says so; null: all records are one shard.
  Permutation(std::uint64_t count, const Shuffle& shuffle, const ShardStarts& shards);

  std::uint64_t size() const { return count_; }
  // The record at `place`, which is below size().
  std::uint64_t operator[](std::uint64_t place) const;

 private:
  // A block of records, and the place at which the permuted order has it.
  struct Block {
    std::uint64_t number;
    std::uint64_t first_record;
    std::uint64_t first_place;
    std::uint64_t count;
  };
  Block block_at(std::uint64_t place) const;

  std::uint64_t count_;
  std::uint64_t seed_;
  // Blocks of one size: their size, and where the last one is, which may be shorter.
  std::uint64_t block_records_;
  std::uint64_t last_block_ = 0;
  std::uint64_t last_first_place_ = 0;
  std::uint64_t last_count_ = 0;
  Bijection whole_;                  // where all records are one block
  std::optional<Bijection> blocks_;  // else
  // Shards as blocks: where each begins, and where those in permuted order begin.
  ShardStarts shards_;
  std::vector<std::uint64_t> first_places_;
};

}  // namespace npyfs
