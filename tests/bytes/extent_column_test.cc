// SPDX-License-Identifier: Apache-2.0
//
// Places of records, whether they are kept as three numbers or one by one.

#include "formats/bytes/extent_column.h"

#include <gtest/gtest.h>

#include <utility>

namespace npyfs {
namespace {

using Places = std::vector<std::pair<std::uint64_t, std::uint64_t>>;

ExtentColumn column_of(const Places& places) {
  ExtentColumn column;
  for (const auto& [offset, nbytes] : places) {
    column.append(offset, nbytes);
  }
  column.shrink();
  return column;
}

void expect_places(const ExtentColumn& column, const Places& places) {
  ASSERT_EQ(column.size(), places.size());
  for (std::size_t i = 0; i < places.size(); ++i) {
    EXPECT_EQ(std::pair(column[i].offset, column[i].nbytes), places[i]) << "record " << i;
  }
}

TEST(ExtentColumn, KeepsEqualRecordsAsThreeNumbers) {
  Places places;
  for (std::uint64_t i = 0; i < 10; ++i) {
    places.emplace_back(100 + 24 * i, 20);
  }
  const ExtentColumn column = column_of(places);
  EXPECT_TRUE(column.equal());
  EXPECT_EQ(column.stride(), 24U);
  expect_places(column, places);
  EXPECT_EQ(column.run(0), 1U) << "there are gaps";
}

TEST(ExtentColumn, RunsWhereRecordsTouch) {
  const ExtentColumn column = column_of({{8, 5}, {13, 5}, {18, 5}, {23, 5}});
  EXPECT_TRUE(column.equal());
  EXPECT_EQ(column.run(0), 4U);
  EXPECT_EQ(column.run(3), 1U);
}

TEST(ExtentColumn, MayBeEmptyOrOfOne) {
  EXPECT_EQ(ExtentColumn().size(), 0U);
  const ExtentColumn one = column_of({{7, 3}});
  EXPECT_TRUE(one.equal());
  EXPECT_EQ(one.run(0), 1U);
  expect_places(one, {{7, 3}});
}

// An odd record at each position, by its offset or its size.
TEST(ExtentColumn, SpreadsWhereverTheOddOneStands) {
  for (std::size_t odd = 0; odd < 6; ++odd) {
    for (const bool by_offset : {true, false}) {
      Places places;
      for (std::uint64_t i = 0; i < 6; ++i) {
        places.emplace_back(1000 + 10 * i, 10);
      }
      (by_offset ? places[odd].first : places[odd].second) += 1;
      SCOPED_TRACE(testing::Message() << "record " << odd << (by_offset ? " moved" : " longer"));
      const ExtentColumn column = column_of(places);
      EXPECT_FALSE(column.equal());
      expect_places(column, places);
      for (std::uint64_t i = 0; i < 6; ++i) {
        const std::uint64_t run = column.run(i);
        ASSERT_GE(run, 1U);
        for (std::uint64_t j = 1; j < run; ++j) {
          EXPECT_EQ(column[i + j].offset, column[i].offset + j * column[i].nbytes);
          EXPECT_EQ(column[i + j].nbytes, column[i].nbytes);
        }
      }
    }
  }
}

TEST(ExtentColumn, TakesRecordsInAnyOrderAndTwice) {
  const Places backwards{{300, 10}, {200, 10}, {100, 10}, {100, 10}};
  expect_places(column_of(backwards), backwards);
  const Places same{{50, 10}, {50, 10}, {50, 10}};
  const ExtentColumn column = column_of(same);
  expect_places(column, same);
  EXPECT_EQ(column.run(0), 1U);
}

TEST(ExtentColumn, TakesEmptyRecords) {
  const Places places{{5, 0}, {5, 0}, {5, 7}, {12, 0}};
  expect_places(column_of(places), places);
}

TEST(ExtentColumn, TakesLengthsBeyond32Bits) {
  constexpr std::uint64_t kLong = (std::uint64_t{1} << 32) + 5;
  for (std::size_t odd = 0; odd < 4; ++odd) {
    Places places{{0, 3}, {10, 2}, {20, 1}, {30, 9}};
    places[odd].second = kLong;
    SCOPED_TRACE(odd);
    expect_places(column_of(places), places);
  }
  const Places all_long{{0, kLong}, {kLong, kLong}, {3 * kLong, kLong}, {4 * kLong, 1}};
  expect_places(column_of(all_long), all_long);
  const Places longest_short{{0, UINT32_MAX}, {1, UINT32_MAX}, {3, UINT32_MAX}};
  expect_places(column_of(longest_short), longest_short);
}

}  // namespace
}  // namespace npyfs
