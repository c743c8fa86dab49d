// SPDX-License-Identifier: Apache-2.0
//
// Rows of an array as records, and as fields of a table.

#include "formats/arrays/row_column.h"

#include <gtest/gtest.h>

#include <numeric>

#include "formats/arrays/record_array.h"
#include "tests/support/read_plan.h"

namespace npyfs {
namespace {

using testing::read_plan;

// [6, 2] of u1: row i is 2i, 2i + 1. Rows 0 to 3 lie in one shard, 4 and 5 in another.
class TwoShards : public Array {
 public:
  TwoShards() : Array(DType::simple("|u1"), {6, 2}), bytes_(12) {
    std::iota(bytes_.begin(), bytes_.end(), std::uint8_t{0});
  }
  std::string storage() const override { return "mapped"; }
  std::uint64_t shard_run(std::uint64_t row) const override { return row < 4 ? 4 - row : 6 - row; }
  void plan(ByteRange range, Plan& plan) const override {
    plan.add_memory(std::as_bytes(std::span(bytes_)).data() + range.begin, range.nbytes());
  }

 private:
  std::vector<std::uint8_t> bytes_;
};

std::string bytes_of(const Column& column, std::uint64_t record, ByteRange range) {
  Plan plan;
  column.plan(record, range, plan);
  return read_plan(plan);
}

Shape shape_of(const Column& column, std::uint64_t record) {
  Item item;
  column.inspect(record, item);
  EXPECT_TRUE(item.present);
  EXPECT_EQ(item.damage, nullptr);
  EXPECT_TRUE(item.dtype == DType::simple("|u1"));
  return item.shape;
}

TEST(RowColumn, EachRowIsARecord) {
  const auto column = make_row_column(std::make_shared<TwoShards>());
  ASSERT_EQ(column->size(), 6U);
  EXPECT_EQ(shape_of(*column, 5), (Shape{2}));
  ASSERT_TRUE(column->uniform());
  EXPECT_EQ(column->uniform()->shape, (Shape{2}));
  EXPECT_FALSE(column->time_series());
  EXPECT_EQ(bytes_of(*column, 4, {0, 2}), "\x08\x09");
  EXPECT_EQ(bytes_of(*column, 4, {1, 4}), "\x09\x0a\x0b") << "on into the next row";
  EXPECT_EQ(column->run(4), 2U);
  EXPECT_EQ(column->shard_run(1), 3U);
  EXPECT_EQ(column->shard_run(4), 2U);
}

TEST(RowColumn, OffsetsTellRecordsApart) {
  const auto offsets = std::make_shared<const Offsets>(Offsets{0, 3, 3, 5, 6, 6});
  const auto column = make_row_column(std::make_shared<TwoShards>(), offsets);
  ASSERT_EQ(column->size(), 5U);
  EXPECT_EQ(shape_of(*column, 0), (Shape{3, 2}));
  EXPECT_EQ(shape_of(*column, 1), (Shape{0, 2}));
  EXPECT_EQ(shape_of(*column, 2), (Shape{2, 2}));
  EXPECT_FALSE(column->uniform());
  EXPECT_TRUE(column->time_series());
  EXPECT_EQ(bytes_of(*column, 2, {1, 4}), "\x07\x08\x09");
  // Record 2 begins in the first shard and ends in the second. The last one is empty and begins
  // behind all shards.
  EXPECT_EQ(column->shard_run(0), 3U);
  EXPECT_EQ(column->shard_run(3), 1U);
  EXPECT_EQ(column->shard_run(4), 1U);
}

TEST(RowColumn, ItemsHaveTheRowsOfTheirRecords) {
  const auto array = std::make_shared<TwoShards>();
  const ItemsPtr rows = row_items(array);
  EXPECT_EQ(rows->shape(), (Shape{2}));
  EXPECT_EQ(rows->nbytes(3), 2U);
  const ItemsPtr ragged = row_items(array, std::make_shared<const Offsets>(Offsets{0, 4, 6}));
  EXPECT_EQ(ragged->size(), 2U);
  EXPECT_EQ(ragged->rows(0), 4U);
  EXPECT_EQ(ragged->nbytes(1), 4U);
}

TEST(RowTable, HasItsColumnsAsFields) {
  const auto array = std::make_shared<TwoShards>();
  const auto offsets = std::make_shared<const Offsets>(Offsets{0, 1, 2, 3, 4, 5, 6});
  const TablePtr table =
      make_row_table({{"a", make_row_column(array)}, {"b", make_row_column(array, offsets)}}, {});
  EXPECT_EQ(table->size(), 6U);
  ASSERT_EQ(table->fields().size(), 2U);
  EXPECT_EQ(table->fields()[0].name, "a");
  EXPECT_FALSE(table->fields()[0].time_series);
  EXPECT_TRUE(table->fields()[1].time_series);
  EXPECT_TRUE(table->stored().empty());
}

}  // namespace
}  // namespace npyfs
