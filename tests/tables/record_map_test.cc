// SPDX-License-Identifier: Apache-2.0
//
// The algebra of record maps: every map against the list of places it stands for, and the words of
// views as maps.

#include "formats/tables/record_map.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <set>
#include <utility>

#include "formats/tables/permutation.h"
#include "formats/tables/view_words.h"

namespace npyfs {
namespace {

using Places = std::vector<SourceRecord>;
using Random = std::mt19937_64;

// By operator[] and by stretches, which must agree.
Places places_of(const RecordMap& map) {
  Places places;
  for (std::uint64_t row = 0; row < map.size(); ++row) {
    places.push_back(map[row]);
  }
  for (std::uint64_t row = 0; row < map.size(); ++row) {
    const auto [place, count] = map.stretch(row);
    EXPECT_GE(count, 1U);
    EXPECT_LE(row + count, map.size());
    for (std::uint64_t i = 0; i < count && row + i < places.size(); ++i) {
      EXPECT_EQ(places[row + i], (SourceRecord{place.source, place.record + i}));
    }
  }
  return places;
}

std::vector<std::uint64_t> records_of(const RecordMap& map) {
  std::vector<std::uint64_t> records;
  for (const SourceRecord& place : places_of(map)) {
    EXPECT_EQ(place.source, 0U);
    records.push_back(place.record);
  }
  return records;
}

std::vector<std::uint64_t> numbers(std::uint64_t begin, std::uint64_t end) {
  std::vector<std::uint64_t> all(end - begin);
  std::iota(all.begin(), all.end(), begin);
  return all;
}

// A bijection of [0, count).
void expect_permutation(std::vector<std::uint64_t> records, std::uint64_t count) {
  std::sort(records.begin(), records.end());
  EXPECT_EQ(records, numbers(0, count));
}

// A map of one source with `count` records, of any kind, and what it stands for.
std::pair<RecordMap, std::vector<std::uint64_t>> random_map(std::uint64_t count, Random& random) {
  std::vector<std::uint64_t> records;
  switch (random() % 5) {
    case 0: {
      const std::uint64_t begin = random() % (count + 1);
      const std::uint64_t end = begin + random() % (count - begin + 1);
      return {RecordMap::range({begin, end}), numbers(begin, end)};
    }
    case 1: {
      std::vector<std::uint64_t> left_out;
      for (std::uint64_t record = 0; record < count; ++record) {
        (random() % 3 == 0 ? left_out : records).push_back(record);
      }
      return {RecordMap::without(left_out, count), records};
    }
    case 2:
      for (std::uint64_t i = 0; count > 0 && i < random() % 50; ++i) {
        records.push_back(random() % count);
      }
      return {RecordMap::list(records), records};
    case 3: {
      const std::uint64_t begin = random() % (count + 1);
      const std::uint64_t size = count > 0 ? random() % (2 * count) : 0;
      for (std::uint64_t i = 0; i < size; ++i) {
        records.push_back((begin + i) % count);
      }
      return {RecordMap::window(count, begin, size), records};
    }
    default:
      break;
  }
  const Permutation order(count, {random(), random() % 3, random() % 8, false}, nullptr);
  for (std::uint64_t place = 0; place < count; ++place) {
    records.push_back(order[place]);
  }
  return {RecordMap::permutation(std::make_shared<const Permutation>(order)), records};
}

TEST(RecordMap, ConcatenatesSources) {
  const RecordMap map = RecordMap::concatenation({2, 0, 3});
  EXPECT_EQ(places_of(map), (Places{{0, 0}, {0, 1}, {2, 0}, {2, 1}, {2, 2}}));
  EXPECT_EQ(map.stretch(2).count, 3U);
  EXPECT_FALSE(map.as_range());
}

TEST(RecordMap, KnowsRanges) {
  EXPECT_TRUE(RecordMap::all(5).is_all(5));
  EXPECT_FALSE(RecordMap::all(5).is_all(6));
  EXPECT_FALSE(RecordMap::range({1, 5}).is_all(4));
  EXPECT_TRUE(RecordMap().is_all(0));
  const auto range = RecordMap::list({4, 5, 6}).as_range();
  ASSERT_TRUE(range);
  EXPECT_EQ(range->begin, 4U);
  EXPECT_EQ(range->end, 7U);
  EXPECT_FALSE(RecordMap::list({4, 6}).as_range());
}

// Maps of all kinds, composed three deep over several sources, are what their lists are.
TEST(RecordMap, SelectsAsListsDo) {
  const std::uint64_t seed = std::random_device()();
  SCOPED_TRACE(seed);
  Random random(seed);
  for (int round = 0; round < 3000; ++round) {
    std::vector<std::uint64_t> counts;
    for (std::uint64_t i = 0; i < 1 + random() % 3; ++i) {
      counts.push_back(random() % 2 == 0 ? random() % 4 : random() % 40);
    }
    RecordMap map = RecordMap::concatenation(counts);
    Places expected = places_of(map);
    for (int depth = 0; depth < 3; ++depth) {
      const auto [outer, rows] = random_map(map.size(), random);
      ASSERT_EQ(records_of(outer), rows);
      Places selected;
      for (const std::uint64_t row : rows) {
        selected.push_back(expected[row]);
      }
      map = map.select(outer);
      expected = selected;
      ASSERT_EQ(places_of(map), expected) << "round " << round << ", depth " << depth;
    }
  }
}

TEST(RecordMap, PacksManySourcesIntoAList) {
  const std::vector<std::uint64_t> counts(5000, 7);
  std::vector<std::uint64_t> rows;
  for (std::uint64_t i = 0; i < 5000 * 7; ++i) {
    rows.push_back(i * 7919 % (5000 * 7));
  }
  const RecordMap map = RecordMap::concatenation(counts).select(RecordMap::list(rows));
  for (std::uint64_t i = 0; i < rows.size(); ++i) {
    ASSERT_EQ(map[i], (SourceRecord{rows[i] / 7, rows[i] % 7}));
  }
}

TEST(Bijection, GoesThereAndBack) {
  for (const std::uint64_t count : {1, 2, 3, 4, 5, 16, 17, 1000, 4097}) {
    const Bijection bijection(count, 5);
    std::set<std::uint64_t> seen;
    for (std::uint64_t place = 0; place < count; ++place) {
      seen.insert(bijection[place]);
      EXPECT_EQ(bijection.place_of(bijection[place]), place);
    }
    EXPECT_EQ(seen.size(), count);
    EXPECT_EQ(*seen.rbegin(), count - 1);
  }
  // Numbers of all bits: neither end overflows.
  const Bijection widest(UINT64_MAX, 1);
  EXPECT_EQ(widest.place_of(widest[12345]), 12345U);
}

TEST(Permutation, DependsOnTheSeedAloneAndMovesMostRecords) {
  const Permutation order(10'000, {1}, nullptr);
  const Permutation same(10'000, {1}, nullptr);
  const Permutation other(10'000, {2}, nullptr);
  const Permutation next_epoch(10'000, {1, 1}, nullptr);
  std::uint64_t equal = 0;
  std::uint64_t equal_next = 0;
  std::uint64_t rising = 0;
  for (std::uint64_t place = 0; place < order.size(); ++place) {
    EXPECT_EQ(order[place], same[place]);
    equal += order[place] == other[place] ? 1 : 0;
    equal_next += order[place] == next_epoch[place] ? 1 : 0;
    rising += place > 0 && order[place] > order[place - 1] ? 1 : 0;
  }
  EXPECT_LT(equal, 20U);
  EXPECT_LT(equal_next, 20U);
  EXPECT_NEAR(static_cast<double>(rising), 5000, 300);
}

// Random N, block and seed: a bijection, and each block stays together.
TEST(Permutation, KeepsBlocksTogether) {
  const std::uint64_t seed = std::random_device()();
  SCOPED_TRACE(seed);
  Random random(seed);
  for (int round = 0; round < 500; ++round) {
    const std::uint64_t count = random() % 300;
    const std::uint64_t block = 1 + random() % 40;
    const Permutation order(count, {random(), random() % 4, block, false}, nullptr);
    std::vector<std::uint64_t> records;
    for (std::uint64_t place = 0; place < count; ++place) {
      records.push_back(order[place]);
    }
    expect_permutation(records, count);
    std::uint64_t changes = 0;
    for (std::uint64_t place = 1; place < count; ++place) {
      changes += records[place] / block != records[place - 1] / block ? 1 : 0;
    }
    EXPECT_EQ(changes, count == 0 ? 0 : (count - 1) / block) << count << " by " << block;
  }
}

TEST(Permutation, KeepsShardsTogether) {
  const std::uint64_t seed = std::random_device()();
  SCOPED_TRACE(seed);
  Random random(seed);
  for (int round = 0; round < 500; ++round) {
    auto starts = std::make_shared<std::vector<std::uint64_t>>();
    std::uint64_t count = 0;
    for (std::uint64_t shard = 0; shard < 1 + random() % 8; ++shard) {
      starts->push_back(count);
      count += random() % 3 == 0 ? 0 : random() % 50;
    }
    const Permutation order(count, {random(), 0, 0, true}, starts);
    const auto shard_of = [&](std::uint64_t record) {
      return std::upper_bound(starts->begin(), starts->end(), record) - starts->begin();
    };
    std::vector<std::uint64_t> records;
    std::set<std::ptrdiff_t> left;
    for (std::uint64_t place = 0; place < count; ++place) {
      records.push_back(order[place]);
      if (place > 0 && shard_of(records[place]) != shard_of(records[place - 1])) {
        EXPECT_TRUE(left.insert(shard_of(records[place - 1])).second);
      }
      EXPECT_EQ(left.count(shard_of(records[place])), 0U);
    }
    expect_permutation(records, count);
  }
}

// Shards of one size take the way without memory; the order is the same.
TEST(ViewMap, ShardsOfOneSizeAreBlocks) {
  const View by_shard = parse_view("@shuffle=3,block=shard").value();
  const View by_block = parse_view("@shuffle=3,block=10").value();
  const auto shards = [] {
    return std::make_shared<const std::vector<std::uint64_t>>(
        std::vector<std::uint64_t>{0, 10, 20, 30});
  };
  EXPECT_EQ(records_of(view_map(by_shard, 35, shards)), records_of(view_map(by_block, 35)));
  Permutation listed(35, {3, 0, 0, true}, shards());
  for (std::uint64_t place = 0; place < 35; ++place) {
    EXPECT_EQ(view_map(by_block, 35)[place].record, listed[place]);
  }
}

TEST(ViewMap, BlocksOfShardsFollowRows) {
  const View view = parse_view("@rows=5:30,shuffle=3,block=shard").value();
  const auto shards = [] {
    return std::make_shared<const std::vector<std::uint64_t>>(
        std::vector<std::uint64_t>{0, 8, 8, 20, 29, 40});
  };
  std::vector<std::uint64_t> records = records_of(view_map(view, 50, shards));
  std::uint64_t changes = 0;
  const auto shard_of = [](std::uint64_t record) {
    return record < 8 ? 0 : record < 20 ? 1 : record < 29 ? 2 : 3;
  };
  for (std::size_t i = 1; i < records.size(); ++i) {
    changes += shard_of(records[i]) != shard_of(records[i - 1]) ? 1 : 0;
  }
  EXPECT_EQ(changes, 3U);
  std::sort(records.begin(), records.end());
  EXPECT_EQ(records, numbers(5, 30));
}

TEST(ParseView, KnowsItsWords) {
  const auto view = parse_view("@part=3of16,shuffle=7,pad,rows=2:9,epoch=4,block=8,equal=wrap");
  ASSERT_TRUE(view);
  ASSERT_TRUE(view->shuffle);
  EXPECT_EQ(view->shuffle->seed, 7U);
  EXPECT_EQ(view->shuffle->epoch, 4U);
  EXPECT_EQ(view->shuffle->block, 8U);
  EXPECT_FALSE(view->shuffle->by_shard);
  EXPECT_EQ(view->part.rank, 3U);
  EXPECT_EQ(view->part.world_size, 16U);
  EXPECT_EQ(view->part.equal, Part::Equal::kWrap);
  ASSERT_TRUE(view->rows);
  EXPECT_EQ(view->rows->begin, 2U);
  EXPECT_EQ(view->rows->end, 9U);
  EXPECT_TRUE(view->pad);
  EXPECT_TRUE(parse_view("@pad"));
  EXPECT_TRUE(parse_view("@shuffle=18446744073709551615"));
  EXPECT_TRUE(parse_view("@shuffle=0,block=shard")->shuffle->by_shard);
}

TEST(ParseView, TakesNothingElse) {
  for (const char* name : {"",
                           "@",
                           "pad",
                           "@pad=",
                           "@pad,pad",
                           "@pad,",
                           "@,pad",
                           "@nonsense",
                           "@nonsense=1",
                           "@part",
                           "@part=",
                           "@part=0of0",
                           "@part=2of2",
                           "@part=1of",
                           "@part=of2",
                           "@part=-1of2",
                           "@part=1of1000001",
                           "@part=18446744073709551of20000000000000000",
                           "@part=0of2,part=1of2",
                           "@shuffle",
                           "@shuffle=",
                           "@shuffle=x",
                           "@shuffle=1x",
                           "@shuffle=07",
                           "@shuffle=00",
                           "@shuffle=+7",
                           "@shuffle= 7",
                           "@shuffle=7,block=010",
                           "@shuffle=7,epoch=01",
                           "@part=01of2",
                           "@part=1of02",
                           "@rows=00:5",
                           "@rows=0:05",
                           "@shuffle=18446744073709551616",
                           "@shuffle=1,shuffle=2",
                           "@Pad",
                           "@block=4",
                           "@epoch=1",
                           "@equal=drop",
                           "@shuffle=1,block=0",
                           "@shuffle=1,block=",
                           "@shuffle=1,block=shards",
                           "@shuffle=1,epoch=x",
                           "@part=0of2,equal=no",
                           "@rows=5:4",
                           "@rows=5",
                           "@rows=:5",
                           "@rows=0:18446744073709551616",
                           "@rows=0:1,rows=0:1"}) {
    EXPECT_FALSE(parse_view(name)) << name;
  }
}

// Random N, W, seeds and blocks: parts are disjoint and complete, also of a shuffle, and the parts
// of a shuffle are the shuffle's parts.
TEST(PartMap, PartsMakeTheWhole) {
  const std::uint64_t seed = std::random_device()();
  SCOPED_TRACE(seed);
  Random random(seed);
  for (int round = 0; round < 300; ++round) {
    const std::uint64_t count = random() % 200;
    const std::uint64_t world = 1 + random() % 20;
    View whole;
    if (random() % 2 == 0) {
      whole.shuffle = Shuffle{random(), random() % 3, random() % 10, false};
    }
    const auto expected = records_of(view_map(whole, count));
    for (const auto equal : {Part::Equal::kNear, Part::Equal::kDrop, Part::Equal::kWrap}) {
      std::vector<std::uint64_t> all;
      std::set<std::uint64_t> sizes;
      for (std::uint64_t rank = 0; rank < world; ++rank) {
        View view = whole;
        view.part = {rank, world, equal};
        const auto part = records_of(view_map(view, count));
        all.insert(all.end(), part.begin(), part.end());
        sizes.insert(part.size());
      }
      std::vector<std::uint64_t> wanted = expected;
      if (equal == Part::Equal::kNear) {
        EXPECT_LE(*sizes.rbegin() - *sizes.begin(), 1U);
      } else {
        EXPECT_EQ(sizes.size(), 1U);
        const std::uint64_t size = *sizes.begin() * world;
        const std::uint64_t extra = equal == Part::Equal::kWrap ? world - 1 : 0;
        EXPECT_EQ(size, (count + extra) / world * world);
        wanted.clear();
        for (std::uint64_t i = 0; i < size; ++i) {
          wanted.push_back(expected[i % count]);
        }
      }
      ASSERT_EQ(all, wanted) << count << " of " << world;
    }
  }
}

TEST(PartMap, DoesNotOverflow) {
  const std::uint64_t count = std::uint64_t{1} << 63;
  const RecordMap last = part_map(count, {999'999, 1'000'000});
  EXPECT_EQ(last.size(), count / 1'000'000 + 1);
  EXPECT_EQ(last[last.size() - 1].record, count - 1);
}

}  // namespace
}  // namespace npyfs
