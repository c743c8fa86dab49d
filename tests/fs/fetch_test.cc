// SPDX-License-Identifier: Apache-2.0
//
// Plans become bytes: the same as piece by piece, whatever is merged, widened or copied on the way.

#include "fs/fetch.h"

#include <gtest/gtest.h>

#include <random>

#include "fs/block_cache.h"
#include "tests/support/fake_table.h"
#include "tests/support/read_plan.h"

namespace npyfs {
namespace {

using testing::bytes_field;
using testing::bytes_of;
using testing::FakeRecords;
using testing::FakeSource;
using testing::FakeTable;
using testing::make_table;
using testing::read_plan;
using testing::Refusal;
using testing::refusal_of;

std::string random_bytes(std::mt19937& random, std::size_t nbytes) {
  std::string bytes(nbytes, '\0');
  for (char& c : bytes) {
    c = static_cast<char>(random());
  }
  return bytes;
}

// Records of these sizes with checksums, `gap` bytes apart.
std::shared_ptr<const FakeTable> random_table(std::mt19937& random,
                                              const std::vector<std::size_t>& sizes,
                                              std::uint64_t gap,
                                              const std::set<std::uint64_t>& failing = {}) {
  std::vector<std::string> payloads;
  for (const std::size_t nbytes : sizes) {
    payloads.push_back(random_bytes(random, nbytes));
  }
  FakeRecords records;
  records.name = "gap" + std::to_string(gap);
  records.fields = {bytes_field("x", payloads)};
  records.fields[0].gap = gap;
  records.checksums = true;
  records.failing = failing;
  return make_table(std::move(records));
}

// 1000 bytes a chunk; of every chunk the bytes 900 to 909 are damaged.
class Chunks : public ChunkSource {
 public:
  std::uint64_t chunk_nbytes(std::uint64_t /*chunk*/) const override { return 1000; }
  void decode(std::uint64_t chunk, std::span<std::byte> out,
              DecodeContext& context) const override {
    ++decodes;
    for (std::size_t i = 0; i < out.size(); ++i) {
      out[i] = static_cast<std::byte>(i * 13 + chunk);
    }
    context.mark_damaged({900, 910},
                         std::make_exception_ptr(Error(ErrorKind::kCorrupt, "ten are bad")));
  }

  mutable std::uint64_t decodes = 0;  // one thread
};

// Reads a plan that has been made already.
void fetch_plan(const Fetcher& fetcher, const Plan& plan, Gathered& out) {
  fetcher.read(
      {0, plan.nbytes()}, [&](ByteRange /*range*/, Plan& made) { made = plan; }, out);
}

class FetchTest : public ::testing::Test {
 protected:
  std::string fetch(const Plan& plan) {
    fetch_plan(fetcher_, plan, gathered_);
    EXPECT_LE(gathered_.parts().size(), Fetcher::kMostParts);
    std::string bytes;
    for (const iovec& part : gathered_.parts()) {
      bytes.append(static_cast<const char*>(part.iov_base), part.iov_len);
    }
    return bytes;
  }
  Refusal refusal(const Plan& plan) {
    return refusal_of([&] { fetch(plan); });
  }

  // `range` of the record's bytes.
  static void plan_record(const FakeTable& table, std::uint64_t record, ByteRange range,
                          Plan& plan) {
    plan_stored(*table.fields()[0].bytes, record, range, plan);
  }

  VerifiedRecords verified_{Verify::kRead};
  BlockCache cache_{5000, verified_};
  const Fetcher fetcher_{cache_, verified_};
  Gathered gathered_;  // used again and again, as a reading thread does
  const Chunks chunks_;
  const Chunks others_;
};

TEST_F(FetchTest, AnEmptyPlanIsNoBytes) {
  EXPECT_EQ(fetch(Plan()), "");
  EXPECT_TRUE(gathered_.parts().empty());
}

TEST_F(FetchTest, IsTheSameAsPieceByPieceAtRandom) {
  std::mt19937 random(7);
  const std::vector<std::shared_ptr<const FakeTable>> tables{
      random_table(random, std::vector<std::size_t>(400, 8), 0),
      random_table(random, std::vector<std::size_t>(400, 33), 4),
      random_table(random, {1, 0, 70'000, 3, 3, 3, 0, 300'000, 5, 20, 1'500'000, 9}, 16),
      random_table(random, std::vector<std::size_t>(40, 500), 5000)};
  const FakeSource plain("plain", random_bytes(random, 50'000));
  const auto memory = bytes_of(random_bytes(random, 1000));
  const auto pattern = bytes_of("abcdefg");
  for (std::uint32_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    random.seed(seed);
    // What is verified stays so: now and then all is forgotten.
    VerifiedRecords verified(Verify::kRead);
    BlockCache cache(5000, verified);
    const Fetcher fetcher(cache, seed % 4 == 0 ? verified : verified_);
    Plan plan;
    const std::size_t most = std::vector<std::size_t>{3, 40, 200}[seed % 3];
    for (std::size_t n = 1 + random() % most; n > 0; --n) {
      const FakeTable& table = *tables[random() % tables.size()];
      std::uint64_t record = random() % table.size();
      switch (random() % 8) {
        case 0:
          plan.add_memory(memory.data() + random() % 500, random() % 500);
          break;
        case 1:
          plan.add_fill(std::span(pattern).first(1 + random() % 7), random() % 20, random() % 300);
          break;
        case 2:
          for (std::size_t i = seed % 2 == 0 ? 1 : random() % 30; i > 0; --i) {
            plan.add_chunk(random() % 4 == 0 ? chunks_ : others_, random() % 10, random() % 400,
                           random() % 500);
          }
          break;
        case 3:
          plan.add_extent(plain, random() % 40'000, random() % 10'000, {});
          break;
        case 4:
        case 5: {  // a part of one record
          const std::uint64_t nbytes = stored_nbytes(*table.fields()[0].bytes, record);
          const std::uint64_t begin = nbytes == 0 ? 0 : random() % nbytes;
          const std::uint64_t end = std::min<std::uint64_t>(nbytes, begin + 1 + random() % 2000);
          plan_record(table, record, {begin, end}, plan);
          break;
        }
        default:  // some whole neighbours, or every second one
          const std::uint64_t step = 1 + random() % 2;
          for (int i = 0; i < 20 && record < table.size(); ++i, record += step) {
            const std::uint64_t nbytes = stored_nbytes(*table.fields()[0].bytes, record);
            if (nbytes < 100'000 || random() % 4 == 0) {
              plan_record(table, record, {0, nbytes}, plan);
            }
          }
      }
    }
    const std::string expected = read_plan(plan);
    fetch_plan(fetcher, plan, gathered_);
    std::string bytes;
    for (const iovec& part : gathered_.parts()) {
      bytes.append(static_cast<const char*>(part.iov_base), part.iov_len);
    }
    ASSERT_LE(gathered_.parts().size(), Fetcher::kMostParts);
    ASSERT_TRUE(bytes == expected);
  }
}

TEST_F(FetchTest, FillsWithPatternsFromAnyPhase) {
  const auto pattern = bytes_of("abcd");
  const auto uniform = bytes_of("zzzz");
  Plan plan;
  plan.add_fill(pattern, 6, 7);
  plan.add_fill(uniform, 1, 3);
  plan.add_fill(pattern, 4, 1);
  EXPECT_EQ(fetch(plan), "cdabcdazzza");
}

TEST_F(FetchTest, ServesManyTinyPieces) {
  const FakeSource source("s", std::string(100'000, 'x') + "end");
  const auto memory = bytes_of("0123456789");
  const auto pattern = bytes_of("ab");
  Plan plan;
  for (std::uint64_t i = 0; i < 5000; ++i) {
    plan.add_extent(source, (i * 7919) % 100'000, 1 + i % 4, {});
    plan.add_memory(memory.data() + i % 10, 1);
    plan.add_fill(pattern, i, 1 + i % 3);
    plan.add_chunk(chunks_, i % 3, i % 800, 1 + i % 5);
  }
  EXPECT_GT(plan.pieces().size(), 10'000U);
  EXPECT_EQ(fetch(plan), read_plan(plan));
  EXPECT_EQ(gathered_.parts().size(), 1U);
}

TEST_F(FetchTest, AsksOnceForAChunkThatRowsComeBackTo) {
  // Rows across twelve chunks, of which the cache holds three.
  VerifiedRecords verified(Verify::kRead);
  BlockCache cache(3800, verified);
  Plan plan;
  for (std::uint64_t row = 0; row < 40; ++row) {
    for (std::uint64_t chunk = 0; chunk < 12; ++chunk) {
      plan.add_chunk(chunks_, chunk, row * 20, 20);
    }
  }
  fetch_plan(Fetcher(cache, verified), plan, gathered_);
  EXPECT_EQ(chunks_.decodes, 12U);
  std::string bytes;
  for (const iovec& part : gathered_.parts()) {
    bytes.append(static_cast<const char*>(part.iov_base), part.iov_len);
  }
  EXPECT_EQ(bytes, read_plan(plan));
}

TEST_F(FetchTest, ReadsNeighboursTogether) {
  const FakeSource source("s", std::string(1'000'000, 'x'));
  Plan plan;
  for (std::uint64_t i = 0; i < 50; ++i) {
    plan.add_extent(source, 1000 + i * 500, 100, {});
  }
  fetch(plan);
  EXPECT_EQ(source.reads(), 1U);
  source.forget_reads();
  plan.clear();
  plan.add_extent(source, 0, 100, {});
  plan.add_extent(source, 500'000, 100, {});
  plan.add_extent(source, 100, 100, {});
  fetch(plan);
  EXPECT_EQ(source.reads(), 3U) << "what lies far apart or backwards is not read with it";
  EXPECT_EQ(source.read_nbytes(), 300U);
}

TEST_F(FetchTest, VerifiesWithoutReadingTwice) {
  std::mt19937 random(1);
  for (const std::uint64_t gap : {4, 0}) {
    const auto table = random_table(random, std::vector<std::size_t>(100, 200), gap);
    Plan plan;
    for (std::uint64_t record = 10; record < 30; ++record) {
      plan_record(*table, record, {record == 10 ? 150U : 0U, record == 29 ? 20U : 200U}, plan);
    }
    EXPECT_EQ(fetch(plan), read_plan(plan));
    table->source().forget_reads();
    VerifiedRecords fresh(Verify::kRead);
    fetch_plan(Fetcher(cache_, fresh), plan, gathered_);
    EXPECT_LE(table->source().read_nbytes(), 20U * (200 + gap) + 100U * 4);
    table->source().forget_reads();
    fetch_plan(Fetcher(cache_, fresh), plan, gathered_);
    EXPECT_LE(table->source().read_nbytes(), plan.nbytes() + 20 * gap) << "not widened any more";
  }
}

// The byte that is wrong is the record's last; the piece is its first.
TEST_F(FetchTest, AnswersNoByteOfARecordThatFails) {
  std::mt19937 random(1);
  for (const std::size_t nbytes : {10, 3000, 250'000, 300'000, 3'000'000}) {
    for (const std::uint64_t gap : {0, 4, 100}) {
      SCOPED_TRACE(::testing::Message() << nbytes << " bytes, gap " << gap);
      const auto table = random_table(random, {nbytes, nbytes, nbytes}, gap, {1});
      Plan bad;
      plan_record(*table, 1, {0, 1}, bad);
      for (int i = 0; i < 2; ++i) {
        const Refusal refused = refusal(bad);
        EXPECT_EQ(refused.kind, ErrorKind::kCorrupt);
        EXPECT_NE(refused.text.find("record 1 "), std::string::npos) << refused.text;
      }
      Plan around;
      plan_record(*table, 0, {nbytes - 1, nbytes}, around);
      plan_record(*table, 2, {0, 1}, around);
      EXPECT_EQ(fetch(around), read_plan(around)) << "its neighbours are unharmed";
      Plan all;
      for (std::uint64_t record = 0; record < 3; ++record) {
        plan_record(*table, record, {0, nbytes}, all);
      }
      EXPECT_EQ(refusal(all).kind, ErrorKind::kCorrupt);
    }
  }
}

TEST_F(FetchTest, AFailingRecordIsFoundAmongManyPieces) {
  std::mt19937 random(1);
  const auto table = random_table(random, std::vector<std::size_t>(300, 10), 4, {170});
  Plan plan;
  for (std::uint64_t record = 0; record < 300; ++record) {
    plan_record(*table, record, {0, 1}, plan);
  }
  EXPECT_GT(plan.pieces().size(), Fetcher::kMostParts);
  const Refusal refused = refusal(plan);
  EXPECT_EQ(refused.kind, ErrorKind::kCorrupt);
  EXPECT_NE(refused.text.find("record 170 "), std::string::npos) << refused.text;
}

TEST_F(FetchTest, AnswersFailingRecordsWhereNothingIsVerified) {
  std::mt19937 random(1);
  const auto table = random_table(random, {100}, 4, {0});
  VerifiedRecords never(Verify::kNever);
  Plan plan;
  plan_record(*table, 0, {0, 100}, plan);
  fetch_plan(Fetcher(cache_, never), plan, gathered_);
  ASSERT_EQ(gathered_.parts().size(), 1U);
  EXPECT_EQ(std::string(static_cast<const char*>(gathered_.parts()[0].iov_base), 100),
            table->source().bytes().substr(0, 100));
}

TEST_F(FetchTest, ThrowsWhatADamagedPieceSays) {
  const auto memory = bytes_of("0123456789");
  const Error error(ErrorKind::kCorrupt, "this is why");
  Plan plan;
  plan.add_memory(memory.data(), 5);
  plan.add_damaged(error, 5);
  EXPECT_EQ(refusal(plan).text, "this is why");
  EXPECT_EQ(refusal(plan).kind, ErrorKind::kCorrupt);
}

TEST_F(FetchTest, ThrowsTheDamageInsideAChunkOnlyWhereItIsTouched) {
  Plan good;
  good.add_chunk(chunks_, 1, 0, 900);
  good.add_chunk(chunks_, 1, 910, 90);
  EXPECT_EQ(fetch(good), read_plan(good));
  Plan bad;
  bad.add_chunk(chunks_, 1, 909, 1);
  EXPECT_EQ(refusal(bad).text, "ten are bad");
}

TEST_F(FetchTest, RefusesWhatWasReadFromAChangedSource) {
  const FakeSource source("s", "0123456789");
  const FakeSource other("other", "0123456789");
  Plan plan;
  plan.add_extent(source, 0, 10, {});
  plan.add_extent(other, 0, 10, {});
  EXPECT_EQ(fetch(plan), "01234567890123456789");
  source.set_changed();
  const Refusal refused = refusal(plan);
  EXPECT_EQ(refused.kind, ErrorKind::kChanged);
  EXPECT_EQ(refused.text, "s has changed");
  Plan others;
  others.add_extent(other, 0, 10, {});
  EXPECT_EQ(fetch(others), "0123456789") << "another source is not concerned";
}

TEST_F(FetchTest, TakesAChangeForNoDamage) {
  std::mt19937 random(1);
  const auto table = random_table(random, {100, 100}, 4, {1});
  table->source().set_changed();
  Plan plan;
  plan_record(*table, 1, {0, 100}, plan);
  EXPECT_EQ(refusal(plan).kind, ErrorKind::kChanged);
}

TEST_F(FetchTest, PassesOnWhatReadingThrows) {
  const FakeSource source("s", "0123456789");
  Plan plan;
  plan.add_extent(source, 0, 10, {});
  source.set_failing(true);
  EXPECT_EQ(refusal(plan).kind, ErrorKind::kIo);
  source.set_failing(false);
  EXPECT_EQ(fetch(plan), "0123456789") << "and works again afterwards";
}

TEST_F(FetchTest, HoldsTheBlocksOfItsPartsWhileTheyAreUsed) {
  BlockCache tiny(0, verified_);
  Plan plan;
  for (std::uint64_t chunk = 0; chunk < 20; ++chunk) {
    plan.add_chunk(chunks_, chunk, 0, 900);
  }
  fetch_plan(Fetcher(tiny, verified_), plan, gathered_);
  std::string bytes;
  for (const iovec& part : gathered_.parts()) {
    bytes.append(static_cast<const char*>(part.iov_base), part.iov_len);
  }
  EXPECT_EQ(bytes, read_plan(plan));
}

constexpr std::size_t kFew = 3 << 20;  // bytes: of buffers that are kept for the next read

TEST_F(FetchTest, HoldsNoRecordThatOnlyAFewBytesAreWantedOf) {
  std::mt19937 random(1);
  for (const std::uint64_t nbytes : {100'000, 700'000}) {
    const auto table =
        random_table(random, std::vector<std::size_t>(12'000'000 / nbytes, nbytes), 5000);
    for (const std::uint64_t wanted : {4, 20'000}) {
      SCOPED_TRACE(::testing::Message() << wanted << " of " << nbytes << " bytes a record");
      Plan plan;
      for (std::uint64_t record = 0; record < table->size(); ++record) {
        plan_record(*table, record, {record, record + wanted}, plan);
      }
      VerifiedRecords fresh(Verify::kRead);
      fetch_plan(Fetcher(cache_, fresh), plan, gathered_);
      std::string bytes;
      for (const iovec& part : gathered_.parts()) {
        bytes.append(static_cast<const char*>(part.iov_base), part.iov_len);
      }
      EXPECT_TRUE(bytes == read_plan(plan));
      EXPECT_LT(gathered_.held_nbytes(), 2 * plan.nbytes() + kFew);
    }
  }
}

// Few enough bytes are asked for that what is decoded is handed over as it lies.
TEST_F(FetchTest, HoldsNothingOnceAReadHasFailed) {
  class Large : public ChunkSource {
   public:
    std::uint64_t chunk_nbytes(std::uint64_t /*chunk*/) const override { return 8 << 20; }
    void decode(std::uint64_t /*chunk*/, std::span<std::byte> out,
                DecodeContext& /*context*/) const override {
      std::fill(out.begin(), out.end(), std::byte{1});
    }
  } large;
  const Error error(ErrorKind::kCorrupt, "this is why");
  Plan plan;
  plan.add_chunk(large, 0, 0, 50'000);
  fetch(plan);
  EXPECT_GE(gathered_.held_nbytes(), large.chunk_nbytes(0));
  plan.add_damaged(error, 5);
  EXPECT_EQ(refusal(plan).text, "this is why");
  EXPECT_LT(gathered_.held_nbytes(), kFew);
  EXPECT_TRUE(gathered_.parts().empty());
}

TEST(Scratch, TakesAgainWhatWasTakenBehindAMark) {
  Scratch scratch;
  const auto fill = [](std::byte* bytes, std::size_t nbytes, int value) {
    std::fill_n(bytes, nbytes, static_cast<std::byte>(value));
    return bytes;
  };
  std::vector<std::pair<const std::byte*, std::size_t>> kept;
  for (int i = 0; i < 200; ++i) {
    const auto mark = scratch.mark();
    for (int j = 0; j < 3; ++j) {
      fill(scratch.take(200'000 + 1000 * i), 200'000 + 1000 * i, 255);
    }
    scratch.return_to(mark);
    if (i % 20 == 0) {
      kept.emplace_back(fill(scratch.take(1000), 1000, i), i);
    }
  }
  for (const auto& [bytes, value] : kept) {
    EXPECT_EQ(std::count(bytes, bytes + 1000, static_cast<std::byte>(value)), 1000);
  }
  EXPECT_LT(scratch.held_nbytes(), 10U * (1 << 20)) << "of 180 MB in all";
  const auto mark = scratch.mark();
  std::byte* first = scratch.take(100);
  scratch.return_to(mark);
  EXPECT_EQ(scratch.take(100), first);
}

TEST(Scratch, KeepsWhatWasTakenUntilCleared) {
  Scratch scratch;
  std::vector<std::pair<std::byte*, std::size_t>> taken;
  for (std::size_t i = 0; i < 100; ++i) {
    const std::size_t nbytes = i * 5000;
    taken.emplace_back(scratch.take(nbytes), nbytes);
    std::fill_n(taken.back().first, nbytes, static_cast<std::byte>(i));
  }
  for (std::size_t i = 0; i < taken.size(); ++i) {
    for (std::size_t j = 0; j < taken[i].second; ++j) {
      ASSERT_EQ(taken[i].first[j], static_cast<std::byte>(i));
    }
  }
  scratch.clear();
  std::fill_n(scratch.take(3 << 20), 3 << 20, std::byte{1});
  scratch.clear();
  std::byte* first = scratch.take(10);
  scratch.clear();
  EXPECT_EQ(scratch.take(10), first) << "its memory is used again";
}

}  // namespace
}  // namespace npyfs
