// SPDX-License-Identifier: Apache-2.0
//
// Tables made of many tables, or of all but few rows of a large one.

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <utility>

#include "formats/bytes/fault_tally.h"
#include "formats/bytes/record_set.h"
#include "formats/damage_list.h"
#include "formats/tables/composed_table.h"
#include "tests/arrays/review_tables.h"

namespace npyfs::testing {

namespace {

// Records of one byte, back to back; costs nothing to make. Counts what it is asked.
class ManyBytes : public ByteColumn {
 public:
  explicit ManyBytes(std::uint64_t size)
      : size_(size), source_(std::make_shared<MemorySource>("many", std::string(size, 'x'))) {}
  std::uint64_t size() const override { return size_; }
  bool locate(std::uint64_t record, std::vector<Extent>& out) const override {
    ++asked;
    out.assign(1, {source_.get(), record, 1});
    return true;
  }
  std::uint64_t run(std::uint64_t record) const override {
    ++asked;
    return size_ - record;
  }

  mutable std::uint64_t asked = 0;

 private:
  std::uint64_t size_;
  SourcePtr source_;
};

TablePtr table_of(std::shared_ptr<const ManyBytes> bytes) {
  auto table = std::make_shared<MemoryTable>("many", bytes->size());
  table->add_stored("", std::move(bytes));
  return table;
}

TablePtr many(std::uint64_t size) { return table_of(std::make_shared<ManyBytes>(size)); }

TEST(ViewsReview, LeavingOutOneOfMillionsCostsLittle) {
  constexpr std::uint64_t kRecords = 5'000'000;
  const auto bytes = std::make_shared<const ManyBytes>(kRecords);
  const TablePtr table = leave_out(table_of(bytes), {kRecords / 2});
  const ByteColumn& column = *table->stored()[0].bytes;
  std::uint64_t runs = 0;
  std::vector<Extent> extents;
  for (std::uint64_t record = 0; record < column.size(); ++record) {
    runs += column.run(record);
    column.locate(record, extents);
  }
  EXPECT_LE(bytes->asked, 2 * kRecords) << "once for a run, once for a place";
  // Two runs: looking for the end of each from row to row would not come to an end.
  constexpr std::uint64_t kHalf = kRecords / 2;
  EXPECT_EQ(runs, kHalf * (kHalf + 1) / 2 + (kHalf - 1) * kHalf / 2);
}

TEST(ViewsReview, WhatIsLeftStandsInOrder) {
  for (std::uint64_t pattern = 0; pattern < 256; ++pattern) {
    std::vector<std::uint64_t> left_out;
    std::vector<std::uint64_t> kept;
    for (std::uint64_t record = 0; record < 8; ++record) {
      (((pattern >> record) & 1) != 0 ? left_out : kept).push_back(record);
    }
    const TablePtr table = leave_out(many(8), left_out);
    ASSERT_EQ(table->size(), kept.size()) << pattern;
    const ByteColumn& column = *table->stored()[0].bytes;
    std::vector<Extent> extents;
    for (std::uint64_t row = 0; row < kept.size(); ++row) {
      ASSERT_TRUE(column.locate(row, extents));
      ASSERT_EQ(extents[0].offset, kept[row]) << pattern << ", row " << row;
      for (std::uint64_t i = 1; i < column.run(row); ++i) {
        ASSERT_EQ(kept[row + i], kept[row] + i) << pattern << ", row " << row;
      }
    }
  }
}

TEST(ViewsReview, NextIsTheLeastMemberFromThere) {
  constexpr std::uint64_t k4G = std::uint64_t{1} << 32;
  EXPECT_EQ(RecordSet().next(0), std::nullopt);
  std::mt19937_64 random(11);
  RecordSet set;
  std::set<std::uint64_t> model;
  for (int i = 0; i < 3000; ++i) {
    const std::uint64_t base = (random() % 3) * (2 * k4G - 1000);
    const std::uint64_t record = base + random() % (i % 2 == 0 ? 2000 : 200'000);
    set.add(record);
    model.insert(record);
  }
  set.optimize();
  for (int i = 0; i < 10'000; ++i) {
    const std::uint64_t record = (random() % 3) * (2 * k4G - 1000) + random() % 210'000;
    const auto expected = model.lower_bound(record);
    ASSERT_EQ(set.next(record), expected == model.end() ? std::nullopt : std::optional(*expected));
  }
}

TEST(ViewsReview, OnlyTheFirstDamagedRecordsHaveTheirOwnText) {
  DamageList damaged;
  EXPECT_EQ(damaged.find(0), nullptr);
  EXPECT_EQ(damaged.run(3, 10), 7U);
  for (std::uint64_t i = 0; i < 3000; ++i) {
    damaged.add(2 * i + 1, "text", [&] {
      return Damage{Error(ErrorKind::kCorrupt, "text " + std::to_string(i)), i};
    });
  }
  damaged.shrink();
  EXPECT_EQ(damaged.find(0), nullptr);
  EXPECT_EQ(damaged.find(4098), nullptr);
  EXPECT_STREQ(damaged.find(1)->error.what(), "text 0");
  EXPECT_STREQ(damaged.find(2047)->error.what(), "text 1023");
  EXPECT_STREQ(damaged.find(5999)->error.what(),
               "text 0 (found first; over 1024 records are damaged, this is one of them)");
  EXPECT_EQ(damaged.find(2047)->nbytes, 1023U);
  EXPECT_EQ(damaged.find(5999)->nbytes, std::nullopt);
  EXPECT_EQ(damaged.size(), 3000U);
  EXPECT_EQ(damaged.run(4, 6005), 1U);
  EXPECT_EQ(damaged.run(6000, 6005), 5U);
  EXPECT_EQ(damaged.list().size(), 3000U);
  EXPECT_EQ(damaged.list().back(), 5999U);
}

TEST(ViewsReview, BehindThemTheFirstOfEachKindOfFaultHasItsOwnText) {
  DamageList damaged;
  int described = 0;
  const auto add = [&](std::uint64_t record, const std::string& what) {
    const Error error = corrupt_at("f", record, what);
    damaged.add(record, error.said(), [&] {
      ++described;
      return Damage{error, 8};
    });
  };
  for (std::uint64_t record = 0; record < 2000; ++record) {
    add(record, record % 2 == 0 || record < 1500 ? "the header is bad"
                                                 : "it has " + std::to_string(record) + " bytes");
  }
  for (std::uint64_t record = 2000; record < 2100; ++record) {
    add(record, std::string(record - 1999, 'x'));
  }
  damaged.shrink();
  // Two kinds, 14 more, and all others as one.
  EXPECT_EQ(described, 1024 + 1 + 14 + 1);
  const std::string rest = " (found first; over 1024 records are damaged, this is one of them)";
  const auto text = [&](std::uint64_t record) {
    return std::string(damaged.find(record)->error.what());
  };
  EXPECT_EQ(text(1024), "f at byte 0: the header is bad" + rest);
  EXPECT_EQ(text(1501), "f at byte 1501: it has 1501 bytes");
  EXPECT_EQ(damaged.find(1501)->nbytes, 8U);
  EXPECT_EQ(text(1502), "f at byte 0: the header is bad" + rest);
  EXPECT_EQ(text(1503), "f at byte 1501: it has 1501 bytes" + rest);
  EXPECT_EQ(damaged.find(1503)->nbytes, std::nullopt);
  EXPECT_EQ(text(2099), "f at byte 2014: " + std::string(15, 'x') + rest);

  // Whoever tells them tells the kinds as if each had its own, and of a selection its own.
  FaultTally tally("records");
  for (const std::uint64_t record : damaged.list()) {
    tally.add(damaged.find(record)->error);
  }
  std::vector<std::string> told;
  tally.tell([&](const std::string& line) { told.push_back(line); });
  ASSERT_EQ(told.size(), FaultTally::kMostKinds + 1);
  EXPECT_EQ(told[0], "f at byte 0: the header is bad (and 1749 more records)");
  EXPECT_EQ(told[1], "f at byte 1501: it has 1501 bytes (and 249 more records)");

  // A list made of shared ones says it once.
  DamageList again;
  for (std::uint64_t record = 0; record < 1100; ++record) {
    const Damage& shared = *damaged.find(1503);
    again.add(record, shared.error.said(), [&] { return shared; });
  }
  EXPECT_STREQ(again.find(1099)->error.what(), text(1503).c_str());
}

TEST(ViewsReview, ManyShardsOfManyFieldsAreLookedThroughOnce) {
  constexpr std::uint64_t kShards = 40;
  constexpr std::uint64_t kFields = 50;
  std::vector<std::shared_ptr<MemoryTable>> shards;
  for (std::uint64_t shard = 0; shard < kShards; ++shard) {
    auto table = std::make_shared<MemoryTable>("shard", 1);
    for (std::uint64_t field = 0; field < kFields; ++field) {
      // Each shard lacks one, and has them in another order.
      const std::uint64_t name = (field + shard) % kFields;
      if (field > 0) {
        const std::vector<MemoryItem> item = {{{}, std::string(1, static_cast<char>(name))}};
        table->add_typed("f" + std::to_string(name), std::make_shared<MemoryColumn>("|u1", item));
      }
    }
    shards.push_back(table);
  }
  const TablePtr all = concatenate({shards.begin(), shards.end()});
  std::uint64_t asked = 0;
  for (const auto& shard : shards) {
    asked += shard->asked().fields_asked;
  }
  EXPECT_LE(asked, 4 * kShards);
  ASSERT_EQ(all->fields().size(), kFields);
  for (const Field& field : all->fields()) {
    const auto name = static_cast<std::uint64_t>(std::stoi(field.name.substr(1)));
    EXPECT_EQ(field.bytes, nullptr);
    for (std::uint64_t shard = 0; shard < kShards; ++shard) {
      Item item;
      field.typed->inspect(shard, item);
      ASSERT_EQ(item.present, name != shard % kFields) << field.name << " of " << shard;
    }
  }
}

}  // namespace

}  // namespace npyfs::testing
