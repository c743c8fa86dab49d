// SPDX-License-Identifier: Apache-2.0
//
// Sets of record numbers, against std::set.

#include "formats/bytes/record_set.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <stdexcept>
#include <vector>

namespace npyfs {
namespace {

constexpr std::uint64_t k4G = std::uint64_t{1} << 32;

void expect_same(const RecordSet& set, const std::set<std::uint64_t>& model) {
  ASSERT_EQ(set.size(), model.size());
  EXPECT_EQ(set.empty(), model.empty());
  const std::vector<std::uint64_t> members(model.begin(), model.end());
  std::uint64_t run_end = members.size();
  for (std::size_t rank = members.size(); rank-- > 0;) {
    if (rank + 1 < members.size() && members[rank + 1] != members[rank] + 1) {
      run_end = rank + 1;
    }
    ASSERT_EQ(set.select(rank), members[rank]) << "rank " << rank;
    ASSERT_EQ(set.run(rank), run_end - rank) << "rank " << rank;
    ASSERT_TRUE(set.contains(members[rank]));
    ASSERT_EQ(set.contains(members[rank] + 1), model.count(members[rank] + 1) > 0);
  }
}

TEST(RecordSet, BeginsEmpty) {
  RecordSet set;
  expect_same(set, {});
  EXPECT_FALSE(set.contains(0));
  EXPECT_THROW(set.select(0), std::out_of_range);
}

TEST(RecordSet, TakesAnEmptyRange) {
  RecordSet set;
  set.add_range(5, 5);
  set.add_range(5, 3);
  expect_same(set, {});
}

TEST(RecordSet, CrossesTheBorderOf32Bits) {
  RecordSet set;
  set.add_range(k4G - 3, k4G + 4);
  set.add(k4G + 6);
  set.add(5 * k4G);
  set.remove(k4G + 1);
  set.remove(77);
  set.optimize();
  expect_same(set, {k4G - 3, k4G - 2, k4G - 1, k4G, k4G + 2, k4G + 3, k4G + 6, 5 * k4G});
}

TEST(RecordSet, HoldsMoreThan32BitsCount) {
  RecordSet set;
  set.add_range(0, k4G + 10);
  set.remove(100);
  set.optimize();
  EXPECT_EQ(set.size(), k4G + 9);
  EXPECT_EQ(set.select(99), 99U);
  EXPECT_EQ(set.select(100), 101U);
  EXPECT_EQ(set.select(k4G - 2), k4G - 1);
  EXPECT_EQ(set.select(k4G - 1), k4G);
  EXPECT_EQ(set.select(k4G + 8), k4G + 9);
  EXPECT_EQ(set.run(0), 100U);
  EXPECT_EQ(set.run(100), k4G + 9 - 100);
  EXPECT_THROW(set.select(k4G + 9), std::out_of_range);
}

TEST(RecordSet, MayBeMoved) {
  RecordSet from;
  from.add(3);
  RecordSet to = std::move(from);
  expect_same(to, {3});
}

TEST(RecordSet, IsLikeStdSetAtRandom) {
  for (std::uint32_t seed = 0; seed < 30; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    std::mt19937_64 random(seed);
    // Some lie dense, some sparse; some below 2^32, some across it.
    const std::uint64_t base = std::vector<std::uint64_t>{0, k4G - 200, 7 * k4G - 200}[seed % 3];
    const std::uint64_t span = seed % 2 == 0 ? 400 : 200'000;
    RecordSet set;
    std::set<std::uint64_t> model;
    for (int step = 0; step < 60; ++step) {
      const std::uint64_t record = base + random() % span;
      switch (random() % 3) {
        case 0:
          set.add(record);
          model.insert(record);
          break;
        case 1: {
          const std::uint64_t end = record + random() % 30;
          set.add_range(record, end);
          for (std::uint64_t r = record; r < end; ++r) {
            model.insert(r);
          }
          break;
        }
        default: {
          // Of a member, mostly.
          const auto near = model.lower_bound(record);
          const std::uint64_t gone = near != model.end() ? *near : record;
          set.remove(gone);
          model.erase(gone);
        }
      }
    }
    if (seed % 5 != 0) {
      set.optimize();
    }
    expect_same(set, model);
  }
}

}  // namespace
}  // namespace npyfs
