// SPDX-License-Identifier: Apache-2.0
//
// Records are checked once, and what was found is remembered.

#include "fs/verified_records.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <optional>
#include <random>
#include <thread>

#include "tests/support/fake_table.h"
#include "tests/support/read_plan.h"

namespace npyfs {
namespace {

using testing::bytes_field;
using testing::bytes_of;
using testing::FakeRecords;
using testing::FakeTable;
using testing::make_table;
using testing::Refusal;
using testing::refusal_of;

// 100 records of 50 bytes each.
FakeRecords hundred(const std::set<std::uint64_t>& failing = {}, std::uint64_t gap = 0) {
  FakeRecords records;
  std::vector<std::string> payloads;
  for (int i = 0; i < 100; ++i) {
    payloads.push_back(std::string(50, static_cast<char>(i)));
  }
  records.fields = {bytes_field("x", payloads)};
  records.fields[0].gap = gap;
  records.checksums = true;
  records.failing = failing;
  return records;
}

TEST(VerifiedRecords, ReadsEachRecordOnce) {
  for (const Checksum::Kind kind : {Checksum::Kind::kCrc32, Checksum::Kind::kCrc32cMasked}) {
    FakeRecords records = hundred();
    records.checksum_kind = kind;
    const auto table = make_table(records);
    VerifiedRecords verified(Verify::kRead);
    EXPECT_FALSE(verified.known_intact({table.get(), 10, 5}));
    verified.require_intact({table.get(), 10, 5});
    EXPECT_TRUE(verified.known_intact({table.get(), 10, 5}));
    EXPECT_FALSE(verified.known_intact({table.get(), 9, 2}));
    EXPECT_FALSE(verified.known_intact({table.get(), 14, 2}));
    // Payloads and the checksums behind all of them.
    EXPECT_LE(table->source().read_nbytes(), 5U * 50 + 100U * 4);
    table->source().forget_reads();
    verified.require_intact({table.get(), 11, 3});
    EXPECT_EQ(table->source().reads(), 0U);
    verified.require_intact({table.get(), 0, 100});
    EXPECT_LE(table->source().read_nbytes(), 95U * 50 + 100U * 4);
    EXPECT_LE(table->source().reads(), 95U + 2);
    table->source().forget_reads();
    verified.require_intact({table.get(), 0, 100});
    EXPECT_EQ(table->source().reads(), 0U);
  }
}

TEST(VerifiedRecords, RemembersDamage) {
  for (const std::uint64_t gap : {0, 4, 16}) {
    const auto table = make_table(hundred({42}, gap));
    VerifiedRecords verified(Verify::kRead);
    const Refusal first = refusal_of([&] { verified.require_intact({table.get(), 40, 5}); });
    EXPECT_EQ(first.kind, ErrorKind::kCorrupt);
    EXPECT_NE(first.text.find("fake at byte " + std::to_string(42 * (50 + gap))), std::string::npos)
        << first.text;
    EXPECT_NE(first.text.find("record 42"), std::string::npos) << first.text;
    table->source().forget_reads();
    const Refusal again = refusal_of([&] { verified.require_intact({table.get(), 42, 1}); });
    EXPECT_EQ(again.kind, ErrorKind::kCorrupt);
    EXPECT_EQ(again.text, first.text);
    EXPECT_TRUE(verified.known_intact({table.get(), 40, 2})) << "those before it were good";
    EXPECT_EQ(table->source().reads(), 0U);
    EXPECT_FALSE(verified.known_intact({table.get(), 42, 1}));
    verified.require_intact({table.get(), 43, 57});
    verified.require_intact({table.get(), 0, 42});
  }
}

TEST(VerifiedRecords, KeepsTheTextsOfAThousandDamagedRecordsAndABitForTheOthers) {
  constexpr std::uint64_t kCount = 3000;
  FakeRecords records;
  records.fields = {bytes_field("x", std::vector<std::string>(kCount, "some bytes"))};
  records.checksums = true;
  for (std::uint64_t record = 0; record < kCount; record += 2) {
    records.failing.insert(record);
  }
  const auto table = make_table(records);
  VerifiedRecords verified(Verify::kRead);
  std::vector<std::string> texts;
  std::uint64_t in_full = 0;
  for (std::uint64_t record = 0; record < kCount; ++record) {
    texts.push_back(refusal_of([&] { verified.require_intact({table.get(), record, 1}); }).text);
    if (record % 2 == 1) {
      EXPECT_EQ(texts.back(), "");
      continue;
    }
    const std::string place = "fake at byte " + std::to_string(record * 10) +
                              ": checksum of record " + std::to_string(record) + " (10 bytes) is ";
    EXPECT_EQ(texts.back().substr(0, place.size()), place);
    in_full += texts.back().find("expected 0x") != std::string::npos ? 1 : 0;
  }
  EXPECT_EQ(in_full, 1024U);
  table->source().forget_reads();
  for (std::uint64_t record = 0; record < kCount; ++record) {
    EXPECT_EQ(refusal_of([&] {
                verified.require_intact({table.get(), record, 1});
              }).text,
              texts[record]);
  }
  EXPECT_EQ(table->source().reads(), 0U) << "each is read only once";
}

TEST(VerifiedRecords, ChecksNothingWhereNothingIsWanted) {
  const auto table = make_table(hundred({42}));
  VerifiedRecords never(Verify::kNever);
  EXPECT_TRUE(never.known_intact({table.get(), 0, 100}));
  never.require_intact({table.get(), 0, 100});
  EXPECT_EQ(table->source().reads(), 0U);
  VerifiedRecords verified(Verify::kRead);
  EXPECT_TRUE(verified.known_intact({}));
  verified.require_intact({});
}

TEST(VerifiedRecords, TakesARecordWithoutChecksumForIntact) {
  const auto table = make_table(bytes_field("x", {"a", "b"}));
  VerifiedRecords verified(Verify::kRead);
  verified.require_intact({table.get(), 0, 2});
  EXPECT_TRUE(verified.known_intact({table.get(), 0, 2}));
  EXPECT_EQ(table->source().reads(), 0U);
}

TEST(VerifiedRecords, TriesAgainWhatCouldNotBeRead) {
  const auto table = make_table(hundred());
  VerifiedRecords verified(Verify::kRead);
  table->source().set_failing(true);
  EXPECT_EQ(refusal_of([&] { verified.require_intact({table.get(), 3, 1}); }).kind, ErrorKind::kIo);
  EXPECT_FALSE(verified.known_intact({table.get(), 3, 1}));
  table->source().set_failing(false);
  verified.require_intact({table.get(), 3, 1});
}

TEST(VerifiedRecords, TakesAChangedSourceForNoDamage) {
  const auto table = make_table(hundred({42}));
  VerifiedRecords verified(Verify::kRead);
  table->source().set_changed();
  EXPECT_EQ(refusal_of([&] {
              verified.require_intact({table.get(), 42, 1});
            }).kind,
            ErrorKind::kChanged);
}

TEST(VerifiedRecords, ChecksInTheWindowWhatLiesThere) {
  for (const std::uint64_t gap : {0, 4}) {
    const auto table = make_table(hundred({42}, gap));
    const auto& source = table->source();
    const std::uint64_t stride = 50 + gap;
    // Records 39 (but for its first byte) to 43, with what follows the last.
    const std::uint64_t begin = 39 * stride + 1;
    const std::uint64_t end = 44 * stride;
    const auto bytes = bytes_of(source.bytes().substr(begin, end - begin));
    const ReadWindow window{&source, begin, bytes};
    VerifiedRecords verified(Verify::kRead);
    source.forget_reads();
    verified.require_intact({table.get(), 40, 2}, window);
    verified.require_intact({table.get(), 43, 1}, window);
    EXPECT_LE(source.read_nbytes(), gap == 0 ? 100U * 4 : 0U) << "checksums alone";
    verified.require_intact({table.get(), 39, 1}, window);
    EXPECT_GE(source.read_nbytes(), 50U) << "it does not lie in the window whole";
    EXPECT_EQ(refusal_of([&] {
                verified.require_intact({table.get(), 42, 1}, window);
              }).kind,
              ErrorKind::kCorrupt);
  }
}

TEST(VerifiedRecords, BelievesTheWindowForItsOwnSourceOnly) {
  const auto table = make_table(hundred());
  const auto other = make_table(hundred());
  const std::vector<std::byte> rubbish(5000, std::byte{0x77});
  VerifiedRecords verified(Verify::kRead);
  verified.require_intact({table.get(), 0, 100}, {&other->source(), 0, rubbish});
  EXPECT_EQ(refusal_of([&] {
              verified.require_intact({other.get(), 0, 1}, {&other->source(), 0, rubbish});
            }).kind,
            ErrorKind::kCorrupt);
}

TEST(VerifiedRecords, TellsTablesAndItselfApart) {
  const auto good = make_table(hundred());
  const auto bad = make_table(hundred({7}));
  VerifiedRecords one(Verify::kRead);
  VerifiedRecords other(Verify::kRead);
  one.require_intact({good.get(), 7, 1});
  EXPECT_FALSE(one.known_intact({bad.get(), 7, 1}));
  EXPECT_FALSE(other.known_intact({good.get(), 7, 1}));
  EXPECT_TRUE(one.known_intact({good.get(), 7, 1}));
  EXPECT_EQ(refusal_of([&] { one.require_intact({bad.get(), 7, 1}); }).kind, ErrorKind::kCorrupt);
  one.require_intact({good.get(), 7, 1});
}

// The address of a table that is gone is given to the next one.
TEST(VerifiedRecords, ATableThatIsGoneVouchesForNoOther) {
  const VerifiedRecords verified(Verify::kRead);
  std::optional<FakeTable> table(std::in_place, hundred());
  const void* const address = &*table;
  verified.require_intact({&*table, 0, 100});
  table.emplace(hundred({7}));
  ASSERT_EQ(&*table, address);
  EXPECT_FALSE(verified.known_intact({&*table, 8, 1}));
  EXPECT_EQ(refusal_of([&] {
              verified.require_intact({&*table, 7, 1});
            }).kind,
            ErrorKind::kCorrupt);
  table.emplace(hundred());
  verified.require_intact({&*table, 0, 100});
}

// Longer than the buffer it is read through.
TEST(VerifiedRecords, StopsWhereNobodyWantsTheAnswer) {
  const auto table = make_table(hundred());
  VerifiedRecords verified(Verify::kRead);
  int left = 5;
  verified.set_proceed([&left] {
    if (left-- == 0) {
      throw Error(ErrorKind::kIo, "the mount is ending", EINTR);
    }
  });
  const std::string& bytes = table->source().bytes();
  const ReadWindow all{&table->source(), 0, std::as_bytes(std::span(bytes))};
  const Refusal refused = refusal_of([&] { verified.require_intact({table.get(), 0, 100}, all); });
  EXPECT_EQ(refused.text, "the mount is ending");
  EXPECT_TRUE(verified.known_intact({table.get(), 0, 5}));
  EXPECT_FALSE(verified.known_intact({table.get(), 5, 1}));
  verified.set_proceed(nullptr);
  verified.require_intact({table.get(), 0, 100}, all);
}

TEST(VerifiedRecords, ChecksLongRecords) {
  for (const bool failing : {false, true}) {
    FakeRecords records;
    records.fields = {bytes_field("x", {std::string(3'000'000, 'a'), "b"})};
    records.checksums = true;
    if (failing) {
      records.failing = {0};
    }
    const auto table = make_table(records);
    VerifiedRecords verified(Verify::kRead);
    const Refusal refusal = refusal_of([&] { verified.require_intact({table.get(), 0, 2}); });
    EXPECT_EQ(refusal.kind.has_value(), failing) << refusal.text;
  }
}

// Formats ask while they are still reading their source.
TEST(VerifiedRecords, TablesMayGrowWhileTheyAreAskedAbout) {
  class Growing : public Checksums {
   public:
    std::optional<Checksum> checksum(std::uint64_t record) const override {
      ++asked;
      return table->checksum(record % 100);
    }
    std::string name_of(std::uint64_t record) const override {
      return table->name_of(record % 100);
    }

    std::shared_ptr<const FakeTable> table = make_table(hundred({99}));
    mutable int asked = 0;
  };
  const Growing growing;
  const VerifiedRecords verified(Verify::kRead);
  // 4096 records have a bit each in the first array.
  const std::vector<std::uint64_t> kRecords = {0, 1, 4095, 4096, 8191, 8192, 1'000'000, 5'000'050};
  for (const std::uint64_t record : kRecords) {
    EXPECT_FALSE(verified.known_intact({&growing, record, 1})) << record;
    verified.require_intact({&growing, record, 1});
    EXPECT_TRUE(verified.known_intact({&growing, record, 1})) << record;
    EXPECT_FALSE(verified.known_intact({&growing, record, 3})) << record;
  }
  const int asked = growing.asked;
  for (const std::uint64_t record : kRecords) {
    verified.require_intact({&growing, record, 1});
  }
  EXPECT_EQ(growing.asked, asked) << "none is forgotten as others come";
  verified.require_intact({&growing, 4000, 90});
  verified.require_intact({&growing, 4100, 90});
  EXPECT_TRUE(verified.known_intact({&growing, 4000, 90}));
  EXPECT_EQ(refusal_of([&] {
              verified.require_intact({&growing, 4190, 20});
            }).kind,
            ErrorKind::kCorrupt);
}

TEST(VerifiedRecords, ServesThreads) {
  const auto table = make_table(hundred({13, 77}));
  VerifiedRecords verified(Verify::kRead);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (std::uint32_t t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(t);
      for (int i = 0; i < 500; ++i) {
        const std::uint64_t first = random() % 100;
        const std::uint64_t count = 1 + random() % std::min<std::uint64_t>(5, 100 - first);
        const bool bad = (first <= 13 && 13 < first + count) || (first <= 77 && 77 < first + count);
        const auto kind = refusal_of([&] {
                            verified.require_intact({table.get(), first, count});
                          }).kind;
        wrong += kind == (bad ? std::optional(ErrorKind::kCorrupt) : std::nullopt) ? 0 : 1;
        wrong += verified.known_intact({table.get(), first, count}) == bad ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace npyfs
