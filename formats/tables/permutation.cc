// SPDX-License-Identifier: Apache-2.0

#include "formats/tables/permutation.h"

#include <algorithm>
#include <bit>

namespace npyfs {

namespace {

constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15;

// The finaliser of SplitMix64. 0 stays 0.
std::uint64_t mix(std::uint64_t x) {
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  return x ^ x >> 31;
}

}  // namespace

std::uint64_t Shuffle::epoch_seed() const { return seed ^ mix(epoch); }

Bijection::Bijection(std::uint64_t count, std::uint64_t seed)
    : count_(count),
      half_bits_(count < 2 ? 1 : (static_cast<unsigned>(std::bit_width(count - 1)) + 1) / 2) {
  for (unsigned round = 0; round < kRounds; ++round) {
    keys_[round] = mix(seed + kGolden * (round + 1));
  }
}

// The network permutes the numbers of 2 * half_bits_ bits. What falls beyond the count goes through
// it once more, at most four times on average.
std::uint64_t Bijection::operator[](std::uint64_t place) const {
  do {
    place = step(place);
  } while (place >= count_);
  return place;
}

std::uint64_t Bijection::place_of(std::uint64_t number) const {
  do {
    number = step_back(number);
  } while (number >= count_);
  return number;
}

std::uint64_t Bijection::step(std::uint64_t place) const {
  const std::uint64_t mask = (std::uint64_t{1} << half_bits_) - 1;
  std::uint64_t left = place >> half_bits_;
  std::uint64_t right = place & mask;
  for (unsigned round = 0; round < kRounds; ++round) {
    const std::uint64_t next = left ^ (mix(right ^ keys_[round]) & mask);
    left = right;
    right = next;
  }
  return left << half_bits_ | right;
}

std::uint64_t Bijection::step_back(std::uint64_t place) const {
  const std::uint64_t mask = (std::uint64_t{1} << half_bits_) - 1;
  std::uint64_t left = place >> half_bits_;
  std::uint64_t right = place & mask;
  for (unsigned round = kRounds; round-- > 0;) {
    const std::uint64_t before = right ^ (mix(left ^ keys_[round]) & mask);
    right = left;
    left = before;
  }
  return left << half_bits_ | right;
}

Permutation::Permutation(std::uint64_t count, const Shuffle& shuffle, const ShardStarts& shards)
    : count_(count),
      seed_(shuffle.epoch_seed()),
      block_records_(shuffle.block),
      whole_(count, seed_) {
  if (shuffle.by_shard && shards != nullptr && shards->size() > 1) {
    shards_ = shards;
    blocks_.emplace(shards_->size(), seed_);
    first_places_.reserve(shards_->size());
    std::uint64_t place = 0;
    for (std::uint64_t i = 0; i < shards_->size(); ++i) {
      first_places_.push_back(place);
      const std::uint64_t shard = (*blocks_)[i];
      const std::uint64_t end = shard + 1 < shards_->size() ? (*shards_)[shard + 1] : count_;
      place += end - (*shards_)[shard];
    }
  } else if (!shuffle.by_shard && block_records_ > 0 && block_records_ < count_) {
    last_block_ = (count_ - 1) / block_records_;
    blocks_.emplace(last_block_ + 1, seed_);
    last_first_place_ = blocks_->place_of(last_block_) * block_records_;
    last_count_ = count_ - last_block_ * block_records_;
  }
}

Permutation::Block Permutation::block_at(std::uint64_t place) const {
  if (shards_ != nullptr) {
    // An empty shard has the same place as the next one; the next one is the one to find.
    const auto behind = std::upper_bound(first_places_.begin(), first_places_.end(), place);
    const auto at = static_cast<std::uint64_t>(behind - first_places_.begin()) - 1;
    const std::uint64_t end = behind == first_places_.end() ? count_ : *behind;
    const std::uint64_t shard = (*blocks_)[at];
    return {shard, (*shards_)[shard], first_places_[at], end - first_places_[at]};
  }
  if (place >= last_first_place_ && place - last_first_place_ < last_count_) {
    return {last_block_, last_block_ * block_records_, last_first_place_, last_count_};
  }
  // Blocks behind the shorter one begin earlier, by as much as it is shorter.
  const bool behind = place >= last_first_place_;
  const std::uint64_t at = (place + (behind ? block_records_ - last_count_ : 0)) / block_records_;
  const std::uint64_t block = (*blocks_)[at];
  const std::uint64_t first_place =
      at * block_records_ - (behind ? block_records_ - last_count_ : 0);
  return {block, block * block_records_, first_place, block_records_};
}

std::uint64_t Permutation::operator[](std::uint64_t place) const {
  if (!blocks_) {
    return whole_[place];
  }
  const Block block = block_at(place);
  const Bijection within(block.count, mix(seed_ + block.number + 1));
  return block.first_record + within[place - block.first_place];
}

}  // namespace npyfs
