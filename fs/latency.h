// SPDX-License-Identifier: Apache-2.0
//
// How long requests took: counted in fixed buckets, sixteen for each power of two, so that a
// percentile is known to a sixteenth of itself however many requests there were.

#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace npyfs {

// Buckets of times in ns. Those below 16 ns have one each; the bucket of t is no wider than t / 16.
struct LatencyBuckets {
  static constexpr unsigned kBits = 4;  // of the place within a power of two
  static constexpr unsigned kMostBits = 37;
  static constexpr std::size_t kCount = (kMostBits - kBits + 1) << kBits;

  // The last one holds all from 133 s on.
  static std::size_t bucket_of(std::uint64_t ns) {
    if (ns < (1U << kBits)) {
      return ns;
    }
    const auto exponent = static_cast<unsigned>(std::bit_width(ns)) - 1;
    const std::size_t within = (ns >> (exponent - kBits)) & ((1U << kBits) - 1);
    return std::min(((exponent - kBits + 1) << kBits) + within, kCount - 1);
  }
  // The least time of a bucket; of kCount: the least that has none of its own.
  static std::uint64_t begin_of(std::size_t bucket) {
    if (bucket < (1U << kBits)) {
      return bucket;
    }
    const std::size_t exponent = (bucket >> kBits) + kBits - 1;
    const std::uint64_t within = bucket & ((1U << kBits) - 1);
    return ((std::uint64_t{1} << kBits) + within) << (exponent - kBits);
  }
};

// What has been counted up to a moment.
struct Latency {
  std::array<std::uint64_t, LatencyBuckets::kCount> buckets{};
  std::uint64_t sum_ns = 0;
  std::uint64_t longest_ns = 0;

  void add(const Latency& other);
  std::uint64_t count() const;
  // How many took less than `ns`, which is a power of two from 16 to 2^36.
  std::uint64_t count_below(std::uint64_t ns) const;
  // The time that `share` (0 to 1) of all requests did not exceed (nearest rank): never too short,
  // and too long by a sixteenth at most, up to 133 s. 0 if there were none.
  std::uint64_t percentile_ns(double share) const;
};

// Counts times. Any thread, without locks; many threads had better have one each.
class LatencyCounter {
 public:
  void add(std::uint64_t ns) {
    buckets_[LatencyBuckets::bucket_of(ns)].fetch_add(1, std::memory_order_relaxed);
    sum_ns_.fetch_add(ns, std::memory_order_relaxed);
    std::uint64_t longest = longest_ns_.load(std::memory_order_relaxed);
    while (ns > longest &&
           !longest_ns_.compare_exchange_weak(longest, ns, std::memory_order_relaxed)) {
    }
  }
  // What is added meanwhile may be in it or not.
  void add_to(Latency& total) const;

 private:
  std::array<std::atomic<std::uint64_t>, LatencyBuckets::kCount> buckets_{};
  std::atomic<std::uint64_t> sum_ns_{0};
  std::atomic<std::uint64_t> longest_ns_{0};
};

}  // namespace npyfs
