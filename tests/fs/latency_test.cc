// SPDX-License-Identifier: Apache-2.0
//
// Percentiles of counted times, held against those of sorted samples.

#include "fs/latency.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace npyfs {
namespace {

using Times = std::vector<std::uint64_t>;

Latency counted(const Times& times) {
  LatencyCounter counter;
  for (const std::uint64_t ns : times) {
    counter.add(ns);
  }
  Latency latency;
  counter.add_to(latency);
  return latency;
}

TEST(LatencyBuckets, AreNoWiderThanASixteenthOfWhatIsInThem) {
  EXPECT_EQ(LatencyBuckets::begin_of(0), 0U);
  for (std::size_t i = 0; i < LatencyBuckets::kCount; ++i) {
    const std::uint64_t begin = LatencyBuckets::begin_of(i);
    const std::uint64_t end = LatencyBuckets::begin_of(i + 1);
    ASSERT_LT(begin, end);
    EXPECT_LE(end - begin, std::max<std::uint64_t>(begin / 16, 1)) << i;
    EXPECT_EQ(LatencyBuckets::bucket_of(begin), i);
    EXPECT_EQ(LatencyBuckets::bucket_of(end - 1), i);
  }
  const std::size_t last = LatencyBuckets::kCount - 1;
  EXPECT_EQ(LatencyBuckets::bucket_of(LatencyBuckets::begin_of(last + 1)), last);
  EXPECT_EQ(LatencyBuckets::bucket_of(std::numeric_limits<std::uint64_t>::max()), last);
}

TEST(Latency, OfNothing) {
  const Latency none;
  EXPECT_EQ(none.count(), 0U);
  EXPECT_EQ(none.percentile_ns(0.5), 0U);
  EXPECT_EQ(none.percentile_ns(1), 0U);
}

TEST(Latency, PercentilesAreThoseOfSortedSamples) {
  std::mt19937_64 random(17);
  for (int round = 0; round < 200; ++round) {
    // From a few ns to a minute; some of them equal.
    Times times(1 + random() % 2000);
    const double spread = 1 + static_cast<double>(random() % 24);
    std::lognormal_distribution<> any(std::log(1e4), spread / 8);
    for (std::uint64_t& ns : times) {
      ns = random() % 5 == 0 ? 4096 : static_cast<std::uint64_t>(std::min(any(random), 6e10));
    }
    const Latency latency = counted(times);
    std::sort(times.begin(), times.end());
    ASSERT_EQ(latency.count(), times.size());
    EXPECT_EQ(latency.longest_ns, times.back());
    for (const double share : {0.0, 0.001, 0.25, 0.5, 0.9, 0.99, 0.999, 1.0}) {
      const auto rank = static_cast<std::size_t>(
          std::max(1.0, std::ceil(share * static_cast<double>(times.size()))));
      const std::uint64_t exact = times[rank - 1];
      const std::uint64_t told = latency.percentile_ns(share);
      ASSERT_GE(told, exact) << round << " " << share;
      ASSERT_LE(told, exact + exact / 16) << round << " " << share;
    }
    EXPECT_EQ(latency.percentile_ns(1), times.back());
  }
}

TEST(Latency, CountsThoseBelowAPowerOfTwo) {
  std::mt19937_64 random(5);
  Times times(3000);
  for (std::uint64_t& ns : times) {
    ns = (std::uint64_t{1} << random() % 38) - random() % 2;
  }
  const Latency latency = counted(times);
  for (unsigned bits = 4; bits <= 36; ++bits) {
    const std::uint64_t bound = std::uint64_t{1} << bits;
    const auto below =
        std::count_if(times.begin(), times.end(), [&](std::uint64_t ns) { return ns < bound; });
    EXPECT_EQ(latency.count_below(bound), static_cast<std::uint64_t>(below)) << bits;
  }
}

TEST(Latency, OfSeveralIsThatOfAll) {
  Latency sum = counted({100, 200});
  sum.add(counted({5'000'000, 7}));
  EXPECT_EQ(sum.count(), 4U);
  EXPECT_EQ(sum.sum_ns, 5'000'307U);
  EXPECT_EQ(sum.longest_ns, 5'000'000U);
  EXPECT_EQ(sum.percentile_ns(0.25), 7U);
  EXPECT_EQ(sum.percentile_ns(1), 5'000'000U);
}

}  // namespace
}  // namespace npyfs
