// SPDX-License-Identifier: Apache-2.0
//
// Plans: what continues becomes one piece, what does not stays apart.

#include "formats/bytes/plan.h"

#include <gtest/gtest.h>

#include "tests/support/fake_table.h"
#include "tests/support/read_plan.h"

namespace npyfs {
namespace {

using testing::bytes_of;
using testing::FakeSource;
using testing::make_table;

class PlanTest : public ::testing::Test {
 protected:
  const FakeSource source_{"s", std::string(1000, 's')};
  const FakeSource other_{"o", std::string(1000, 'o')};
  const std::shared_ptr<const Checksums> table_ = make_table(testing::FakeField());
  const std::shared_ptr<const Checksums> other_table_ = make_table(testing::FakeField());
  Plan plan_;
};

TEST_F(PlanTest, JoinsExtentsThatContinue) {
  plan_.add_extent(source_, 10, 5, {});
  plan_.add_extent(source_, 15, 7, {});
  plan_.add_extent(source_, 22, 1, {});
  ASSERT_EQ(plan_.pieces().size(), 1U);
  EXPECT_EQ(plan_.pieces()[0].offset, 10U);
  EXPECT_EQ(plan_.pieces()[0].nbytes, 13U);
  EXPECT_EQ(plan_.nbytes(), 13U);
}

TEST_F(PlanTest, KeepsApartWhatDoesNotContinue) {
  plan_.add_extent(source_, 10, 5, {});
  plan_.add_extent(source_, 16, 5, {});  // a gap
  plan_.add_extent(source_, 20, 5, {});  // an overlap
  plan_.add_extent(source_, 10, 5, {});  // backwards
  plan_.add_extent(other_, 15, 5, {});   // elsewhere
  EXPECT_EQ(plan_.pieces().size(), 5U);
  EXPECT_EQ(plan_.nbytes(), 25U);
}

TEST_F(PlanTest, JoinsGuardsOfNeighbours) {
  plan_.add_extent(source_, 0, 10, {table_.get(), 3, 1});
  plan_.add_extent(source_, 10, 10, {table_.get(), 4, 2});
  ASSERT_EQ(plan_.pieces().size(), 1U);
  EXPECT_EQ(plan_.pieces()[0].guard.first, 3U);
  EXPECT_EQ(plan_.pieces()[0].guard.count, 3U);
}

TEST_F(PlanTest, JoinsPartsOfOneRecord) {
  plan_.add_extent(source_, 0, 10, {table_.get(), 3, 2});
  plan_.add_extent(source_, 10, 10, {table_.get(), 4, 1});
  plan_.add_extent(source_, 20, 10, {table_.get(), 4, 3});
  ASSERT_EQ(plan_.pieces().size(), 1U);
  EXPECT_EQ(plan_.pieces()[0].guard.first, 3U);
  EXPECT_EQ(plan_.pieces()[0].guard.count, 4U);
}

// Bytes that continue, under guards that do not: each keeps its own.
TEST_F(PlanTest, KeepsGuardsApart) {
  plan_.add_extent(source_, 0, 10, {table_.get(), 3, 1});
  plan_.add_extent(source_, 10, 10, {table_.get(), 5, 1});        // a record in between
  plan_.add_extent(source_, 20, 10, {table_.get(), 2, 1});        // an earlier record
  plan_.add_extent(source_, 30, 10, {other_table_.get(), 3, 1});  // another table
  plan_.add_extent(source_, 40, 10, {});                          // none
  plan_.add_extent(source_, 50, 10, {table_.get(), 0, 1});
  ASSERT_EQ(plan_.pieces().size(), 6U);
  EXPECT_EQ(plan_.pieces()[0].guard.count, 1U);
  EXPECT_EQ(plan_.pieces()[1].guard.first, 5U);
  EXPECT_EQ(plan_.pieces()[2].guard.first, 2U);
  EXPECT_EQ(plan_.pieces()[3].guard.checksums, other_table_.get());
  EXPECT_EQ(plan_.pieces()[4].guard.checksums, nullptr);
  EXPECT_EQ(plan_.pieces()[5].guard.checksums, table_.get());
}

TEST_F(PlanTest, JoinsMemoryThatContinues) {
  const auto memory = bytes_of("0123456789");
  plan_.add_memory(memory.data(), 3);
  plan_.add_memory(memory.data() + 3, 2);
  plan_.add_memory(memory.data() + 6, 2);
  ASSERT_EQ(plan_.pieces().size(), 2U);
  EXPECT_EQ(testing::read_plan(plan_), "0123467");
}

TEST_F(PlanTest, KeepsFillsAndDamage) {
  const auto pattern = bytes_of("abcd");
  const Error error(ErrorKind::kCorrupt, "broken");
  plan_.add_fill(pattern, 6, 7);
  ASSERT_EQ(plan_.pieces().size(), 1U);
  EXPECT_EQ(testing::read_plan(plan_), "cdabcda");
  plan_.add_damaged(error, 5);
  ASSERT_EQ(plan_.pieces().size(), 2U);
  EXPECT_EQ(plan_.pieces()[1].error, &error);
  EXPECT_EQ(plan_.nbytes(), 12U);
}

TEST_F(PlanTest, JoinsFillsThatContinueTheirPattern) {
  const auto pattern = bytes_of("abcd");
  const auto other = bytes_of("abcd");
  plan_.add_fill(pattern, 2, 7);
  plan_.add_fill(pattern, 1, 3);
  ASSERT_EQ(plan_.pieces().size(), 1U);
  EXPECT_EQ(testing::read_plan(plan_), "cdabcdabcd");
  plan_.add_fill(pattern, 1, 2);  // out of phase
  plan_.add_fill(other, 3, 1);    // another pattern
  EXPECT_EQ(plan_.pieces().size(), 3U);
  EXPECT_EQ(testing::read_plan(plan_), "cdabcdabcdbcd");
}

TEST_F(PlanTest, JoinsPartsOfOneChunk) {
  struct : ChunkSource {
    std::uint64_t chunk_nbytes(std::uint64_t /*chunk*/) const override { return 100; }
    void decode(std::uint64_t /*chunk*/, std::span<std::byte> /*out*/,
                DecodeContext& /*context*/) const override {}
  } chunks, others;
  plan_.add_chunk(chunks, 3, 10, 5);
  plan_.add_chunk(chunks, 3, 15, 5);
  ASSERT_EQ(plan_.pieces().size(), 1U);
  EXPECT_EQ(plan_.pieces()[0].nbytes, 10U);
  plan_.add_chunk(chunks, 3, 21, 5);  // a gap
  plan_.add_chunk(chunks, 4, 26, 5);  // another chunk
  plan_.add_chunk(others, 4, 31, 5);
  EXPECT_EQ(plan_.pieces().size(), 4U);
}

TEST_F(PlanTest, LeavesOutWhatIsEmptyAndCanBeCleared) {
  const auto memory = bytes_of("x");
  const Error error(ErrorKind::kCorrupt, "broken");
  plan_.add_extent(source_, 0, 0, {});
  plan_.add_memory(memory.data(), 0);
  plan_.add_fill(memory, 0, 0);
  plan_.add_damaged(error, 0);
  EXPECT_TRUE(plan_.pieces().empty());
  plan_.add_extent(source_, 0, 4, {});
  plan_.add_extent(source_, 9, 0, {});
  plan_.add_extent(source_, 4, 4, {});
  EXPECT_EQ(plan_.pieces().size(), 1U) << "an empty piece does not interrupt";
  plan_.clear();
  EXPECT_EQ(plan_.nbytes(), 0U);
}

}  // namespace
}  // namespace npyfs
