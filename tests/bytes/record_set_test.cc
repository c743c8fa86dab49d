// SPDX-License-Identifier: Apache-2.0

#include "formats/bytes/record_set.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <set>

namespace npyfs {

namespace {

constexpr std::uint64_t kHalf = std::uint64_t{1} << 32;

TEST(RecordSet, BeginsEmpty) {
  const RecordSet set;
  EXPECT_TRUE(set.empty());
  EXPECT_EQ(set.size(), 0U);
  EXPECT_FALSE(set.contains(0));
}

TEST(RecordSet, HoldsMembersOnBothSidesOf32Bits) {
  RecordSet set;
  for (const std::uint64_t record : {std::uint64_t{0}, kHalf - 1, kHalf, kHalf * 3 + 7}) {
    set.add(record);
  }
  set.optimize();
  EXPECT_EQ(set.size(), 4U);
  EXPECT_TRUE(set.contains(kHalf - 1));
  EXPECT_TRUE(set.contains(kHalf));
  EXPECT_TRUE(set.contains(kHalf * 3 + 7));
  EXPECT_FALSE(set.contains(7));
  EXPECT_FALSE(set.contains(kHalf + 1));
}

TEST(RecordSet, IsWhatAStdSetIs) {
  std::mt19937_64 random(7);
  RecordSet set;
  std::set<std::uint64_t> model;
  for (int i = 0; i < 5000; ++i) {
    // Dense in two places, so that both kinds of container occur.
    const std::uint64_t record = random() % 3000 + (random() % 2 == 0 ? 0 : kHalf - 1000);
    set.add(record);
    model.insert(record);
  }
  set.optimize();
  EXPECT_EQ(set.size(), model.size());
  for (std::uint64_t record = 0; record < 4000; ++record) {
    ASSERT_EQ(set.contains(record), model.count(record) == 1) << record;
    const std::uint64_t far = record + kHalf - 1500;
    ASSERT_EQ(set.contains(far), model.count(far) == 1) << far;
  }
}

}  // namespace

}  // namespace npyfs
