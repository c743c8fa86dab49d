// SPDX-License-Identifier: Apache-2.0

#include "formats/arrays/record_order.h"

namespace npyfs {

namespace {

constexpr int kRounds = 6;

// The finaliser of SplitMix64.
std::uint64_t mix(std::uint64_t x) {
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  return x ^ x >> 31;
}

}  // namespace

RecordOrder::RecordOrder(std::uint64_t count, std::optional<std::uint64_t> seed, const Part& part)
    : count_(count), seed_(seed) {
  const Bounds bounds = part_bounds(count, part);
  begin_ = bounds.begin;
  end_ = bounds.end;
  while (half_bits_ < 32 && count > std::uint64_t{1} << (2 * half_bits_)) {
    ++half_bits_;
  }
}

// A Feistel network permutes the numbers of 2 * half_bits_ bits; what falls beyond the count goes
// through it once more, at most four times on average. No table, the same on every machine.
std::uint64_t RecordOrder::shuffled(std::uint64_t place) const {
  const std::uint64_t mask = (std::uint64_t{1} << half_bits_) - 1;
  do {
    std::uint64_t left = place >> half_bits_;
    std::uint64_t right = place & mask;
    for (int round = 0; round < kRounds; ++round) {
      const std::uint64_t key = mix(*seed_ + 0x9e3779b97f4a7c15 * static_cast<unsigned>(round + 1));
      const std::uint64_t next = left ^ (mix(right ^ key) & mask);
      left = right;
      right = next;
    }
    place = left << half_bits_ | right;
  } while (place >= count_);
  return place;
}

}  // namespace npyfs
