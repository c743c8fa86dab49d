// SPDX-License-Identifier: Apache-2.0
//
// The strict reader: what a plan stands for, or the first reason why it cannot be read.

#include "formats/bytes/strict_reader.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "formats/extents.h"
#include "tests/support/fake_table.h"
#include "tests/support/read_plan.h"

namespace npyfs {
namespace {

using testing::bytes_field;
using testing::bytes_of;
using testing::FakeRecords;
using testing::FakeSource;
using testing::make_table;
using testing::refusal_of;

// 100 bytes a chunk; of every chunk but 1000 the bytes 90 to 94 are damaged, chunk 7 is damaged
// whole.
class Chunks : public ChunkSource {
 public:
  explicit Chunks(const ByteSource* source = nullptr) : source_(source) {}

  std::uint64_t chunk_nbytes(std::uint64_t /*chunk*/) const override { return 100; }
  void decode(std::uint64_t chunk, std::span<std::byte> out,
              DecodeContext& context) const override {
    ++decodes;
    if (chunk == 7) {
      throw Error(ErrorKind::kCorrupt, "all is bad");
    }
    if (source_ != nullptr) {
      source_->read_at(0, out.first(1));
    }
    for (std::size_t i = 0; i < out.size(); ++i) {
      out[i] = static_cast<std::byte>(i * 13 + chunk);
    }
    if (chunk != 1000) {
      context.mark_damaged({90, 95},
                           std::make_exception_ptr(Error(ErrorKind::kCorrupt, "five are bad")));
    }
  }

  mutable std::uint64_t decodes = 0;

 private:
  const ByteSource* source_;
};

class StrictReaderTest : public ::testing::Test {
 protected:
  std::string read(const Plan& plan) { return read(plan, reader_); }
  static std::string read(const Plan& plan, StrictReader& reader) {
    std::string bytes(plan.nbytes(), '?');
    reader.read([&](ByteRange /*range*/, Plan& made) { made = plan; }, 0,
                std::as_writable_bytes(std::span(bytes)));
    return bytes;
  }

  const FakeSource source_{"s", "0123456789"};
  const Chunks chunks_;
  StrictReader reader_{strict_verifier()};
};

TEST_F(StrictReaderTest, ReadsEveryKindOfPiece) {
  const auto memory = bytes_of("memory");
  const auto pattern = bytes_of("abc");
  Plan plan;
  plan.add_extent(source_, 3, 4, {});
  plan.add_memory(memory.data(), memory.size());
  plan.add_fill(pattern, 1, 8);
  plan.add_chunk(chunks_, 2, 10, 5);
  plan.add_fill(std::span(pattern).first(1), 0, 3);
  EXPECT_EQ(read(plan), "3456memorybcabcabc" + testing::read_plan(plan).substr(18, 5) + "aaa");
  EXPECT_EQ(read(plan), testing::read_plan(plan));
}

TEST_F(StrictReaderTest, EqualsTheSlowReadingOfAnyPlan) {
  std::mt19937 random(4);
  const auto memory = bytes_of("any bytes that lie in memory");
  for (int round = 0; round < 200; ++round) {
    Plan plan;
    for (std::uint64_t i = random() % 20; i-- > 0;) {
      const std::uint64_t at = random() % 10;
      const std::uint64_t nbytes = random() % (10 - at + 1);
      switch (random() % 4) {
        case 0:
          plan.add_extent(source_, at, nbytes, {});
          break;
        case 1:
          plan.add_memory(memory.data() + at, nbytes);
          break;
        case 2:
          plan.add_chunk(chunks_, random() % 3, 8 * at, nbytes);
          break;
        default:
          plan.add_fill(std::span(memory).first(1 + at), at, 5 * nbytes);
      }
    }
    ASSERT_EQ(read(plan), testing::read_plan(plan));
  }
}

TEST_F(StrictReaderTest, AsksAgainUntilAllIsPlanned) {
  std::string bytes(9, '?');
  std::vector<std::uint64_t> begins;
  reader_.read(
      [&](ByteRange range, Plan& plan) {
        begins.push_back(range.begin);
        EXPECT_EQ(range.end, 10U);
        plan.add_extent(source_, range.begin, std::min<std::uint64_t>(4, range.nbytes()), {});
      },
      1, std::as_writable_bytes(std::span(bytes)));
  EXPECT_EQ(bytes, "123456789");
  EXPECT_EQ(begins, (std::vector<std::uint64_t>{1, 5, 9}));
}

TEST_F(StrictReaderTest, RefusesPlansOfNothingOrOfMore) {
  std::vector<std::byte> out(4);
  for (const std::uint64_t planned : {0, 5}) {
    const auto refusal = refusal_of([&] {
      reader_.read(
          [&](ByteRange /*range*/, Plan& plan) { plan.add_extent(source_, 0, planned, {}); }, 0,
          out);
    });
    EXPECT_EQ(refusal.kind, ErrorKind::kIo);
    EXPECT_NE(refusal.text.find("expected 1 to 4"), std::string::npos) << refusal.text;
  }
}

TEST_F(StrictReaderTest, VerifiesGuardsAsItsVerifierSays) {
  FakeRecords records;
  records.name = "f";
  records.fields = {bytes_field("x", {"aa", "bb", "cc", "dd"})};
  records.checksums = true;
  records.failing = {2};
  const auto table = make_table(records);
  const ByteColumn& column = *table->fields()[0].bytes;
  const auto plan_of = [&](std::uint64_t record, ByteRange range) {
    Plan plan;
    plan_stored(column, record, range, plan);
    return plan;
  };
  EXPECT_EQ(read(plan_of(0, {0, 4})), "aabb");
  const auto refusal = refusal_of([&] { read(plan_of(0, {0, 5})); });
  EXPECT_EQ(refusal.kind, ErrorKind::kCorrupt);
  EXPECT_EQ(refusal.text.find("f at byte 4: checksum of record 2 (2 bytes) is 0x"), 0U)
      << refusal.text;
  EXPECT_EQ(read(plan_of(3, {0, 2})), "dd");
  StrictReader trusting(trusting_verifier());
  EXPECT_EQ(read(plan_of(0, {0, 8}), trusting), "aabbcbdd") << "one bit is another";
}

TEST_F(StrictReaderTest, ReadsWholeRecordsOnceThoughTheyAreVerified) {
  FakeRecords records;
  records.fields = {bytes_field("x", {"aa", "bb", "cc"})};
  records.checksums = true;
  const auto table = make_table(records);
  Plan plan;
  plan_stored(*table->fields()[0].bytes, 0, {0, 6}, plan);
  table->source().forget_reads();
  EXPECT_EQ(read(plan), "aabbcc");
  EXPECT_EQ(table->source().read_nbytes(), 6U + 3 * 4) << "the payloads and their checksums";
  plan.clear();
  plan_stored(*table->fields()[0].bytes, 1, {1, 2}, plan);
  EXPECT_EQ(read(plan), "b") << "of a part the record is read as well";
}

TEST_F(StrictReaderTest, GuardsMemoryToo) {
  FakeRecords records;
  records.fields = {bytes_field("x", {"aa"})};
  records.checksums = true;
  records.failing = {0};
  const auto table = make_table(records);
  const auto memory = bytes_of("decoded before");
  Plan plan;
  plan.add_memory(memory.data(), memory.size(), {table.get(), 0, 1});
  EXPECT_EQ(refusal_of([&] { read(plan); }).kind, ErrorKind::kCorrupt);
}

TEST_F(StrictReaderTest, ThrowsWhatIsPlannedAsDamaged) {
  const Error error(ErrorKind::kCorrupt, "record 3 is damaged");
  Plan plan;
  plan.add_extent(source_, 0, 2, {});
  plan.add_damaged(error, 4);
  EXPECT_EQ(refusal_of([&] { read(plan); }).text, "record 3 is damaged");
}

TEST_F(StrictReaderTest, ThrowsTheDamageOfAChunkThatIsTouched) {
  const auto refusal = [&](std::uint64_t chunk, ByteRange range) {
    Plan plan;
    plan.add_chunk(chunks_, chunk, range.begin, range.nbytes());
    return refusal_of([&] { read(plan); });
  };
  EXPECT_EQ(refusal(1, {0, 90}).kind, std::nullopt);
  EXPECT_EQ(refusal(1, {95, 100}).kind, std::nullopt);
  EXPECT_EQ(refusal(1, {0, 91}).text, "five are bad");
  EXPECT_EQ(refusal(1, {94, 95}).text, "five are bad");
  EXPECT_EQ(refusal(7, {0, 1}).text, "all is bad");
}

TEST_F(StrictReaderTest, DecodesAChunkOnceWhilePiecesOfItFollowEachOther) {
  const Chunks other;
  Plan plan;
  plan.add_chunk(chunks_, 1, 0, 10);
  plan.add_chunk(chunks_, 1, 50, 10);
  read(plan);
  read(plan);
  EXPECT_EQ(chunks_.decodes, 1U);
  plan.add_chunk(chunks_, 2, 0, 10);
  plan.add_chunk(other, 2, 0, 10);  // another source's chunk of that number
  plan.add_chunk(chunks_, 2, 0, 10);
  read(plan);
  EXPECT_EQ(chunks_.decodes, 3U);
  EXPECT_EQ(other.decodes, 1U);
}

TEST_F(StrictReaderTest, SaysWhetherAChunkIsGood) {
  StrictReader reader(strict_verifier());
  reader.require_good(chunks_, 1000);
  EXPECT_EQ(refusal_of([&] { reader.require_good(chunks_, 1); }).text, "five are bad");
  EXPECT_EQ(refusal_of([&] { reader.require_good(chunks_, 7); }).text, "all is bad");
  reader.require_good(chunks_, 1000);
}

TEST_F(StrictReaderTest, TakesChunksFromACacheThatIsGiven) {
  LastChunkCache cache(strict_verifier());
  const auto held = cache.get(chunks_, 1);
  StrictReader reader(strict_verifier(), cache);
  Plan plan;
  plan.add_chunk(chunks_, 1, 0, 10);
  EXPECT_EQ(read(plan, reader), testing::text_of(std::span(held->bytes).first(10)));
  EXPECT_EQ(chunks_.decodes, 1U);
}

TEST_F(StrictReaderTest, GivesNoBytesOfAChangedSource) {
  Plan plan;
  plan.add_extent(source_, 0, 4, {});
  EXPECT_EQ(read(plan), "0123");
  source_.set_changed();
  EXPECT_EQ(refusal_of([&] { read(plan); }).kind, ErrorKind::kChanged);
}

TEST_F(StrictReaderTest, GivesNoBytesOfAChunkOfAChangedSource) {
  const Chunks chunks(&source_);
  Plan plan;
  plan.add_chunk(chunks, 0, 0, 4);
  read(plan);
  source_.set_changed();
  EXPECT_EQ(refusal_of([&] { read(plan); }).kind, ErrorKind::kChanged);
  EXPECT_EQ(chunks.decodes, 1U) << "what it holds is asked, too";
}

TEST_F(StrictReaderTest, DecodingThrowsWhatIsMarkedAsDamaged) {
  std::vector<std::byte> out(100);
  EXPECT_EQ(refusal_of([&] {
              reader_.decode([&](DecodeContext& context) { chunks_.decode(0, out, context); });
            }).text,
            "five are bad");
  reader_.decode([&](DecodeContext& /*context*/) { source_.read_at(0, std::span(out).first(1)); });
  source_.set_changed();
  EXPECT_EQ(refusal_of([&] {
              reader_.decode(
                  [&](DecodeContext& /*context*/) { source_.read_at(0, std::span(out).first(1)); });
            }).kind,
            ErrorKind::kChanged);
}

TEST_F(StrictReaderTest, ItemsAreDecodedOrReadWhereTheyLie) {
  for (const bool decoded : {false, true}) {
    FakeRecords records;
    records.fields = {testing::typed_field("x", "|u1", {{{2}, "ab"}, {{3}, "cde"}, {{1}, "f"}})};
    records.fields[0].decoded = decoded;
    records.checksums = true;
    records.failing = {2};
    const auto table = make_table(records);
    const Column& column = *table->fields()[0].typed;
    std::string item(3, '?');
    read_item(column, 1, std::as_writable_bytes(std::span(item)), reader_);
    EXPECT_EQ(item, "cde");
    EXPECT_EQ(refusal_of([&] {
                read_item(column, 2, std::as_writable_bytes(std::span(item).first(1)), reader_);
              }).kind,
              ErrorKind::kCorrupt);
    StrictReader trusting(trusting_verifier());
    read_item(column, 2, std::as_writable_bytes(std::span(item).first(1)), trusting);
    EXPECT_EQ(item[0], 'f' ^ 1);
  }
}

}  // namespace
}  // namespace npyfs
