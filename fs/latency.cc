// SPDX-License-Identifier: Apache-2.0

#include "fs/latency.h"

#include <cmath>
#include <numeric>

namespace npyfs {

void Latency::add(const Latency& other) {
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    buckets[i] += other.buckets[i];
  }
  sum_ns += other.sum_ns;
  longest_ns = std::max(longest_ns, other.longest_ns);
}

std::uint64_t Latency::count() const {
  return std::accumulate(buckets.begin(), buckets.end(), std::uint64_t{0});
}

std::uint64_t Latency::count_below(std::uint64_t ns) const {
  const auto end = buckets.begin() + static_cast<std::ptrdiff_t>(LatencyBuckets::bucket_of(ns));
  return std::accumulate(buckets.begin(), end, std::uint64_t{0});
}

std::uint64_t Latency::percentile_ns(double share) const {
  const auto all = static_cast<double>(count());
  const auto rank = static_cast<std::uint64_t>(std::max(1.0, std::ceil(share * all)));
  std::uint64_t behind = 0;
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    behind += buckets[i];
    if (behind >= rank) {
      // What is counted meanwhile may not be in longest_ns yet, and the last bucket has no end.
      const std::uint64_t end =
          i + 1 < buckets.size() ? LatencyBuckets::begin_of(i + 1) - 1 : longest_ns;
      return std::min(end, std::max(longest_ns, LatencyBuckets::begin_of(i)));
    }
  }
  return 0;
}

void LatencyCounter::add_to(Latency& total) const {
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    total.buckets[i] += buckets_[i].load(std::memory_order_relaxed);
  }
  total.sum_ns += sum_ns_.load(std::memory_order_relaxed);
  total.longest_ns = std::max(total.longest_ns, longest_ns_.load(std::memory_order_relaxed));
}

}  // namespace npyfs
