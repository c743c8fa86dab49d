// SPDX-License-Identifier: Apache-2.0
//
// Records and their checksums, and those who compare the two.

#include "formats/bytes/verifier.h"

#include <gtest/gtest.h>

#include "formats/bytes/zip_members.h"
#include "tests/support/fake_table.h"
#include "tests/support/zip_writer.h"

namespace npyfs {
namespace {

using testing::bytes_field;
using testing::FakeRecords;
using testing::FakeSource;
using testing::make_table;
using testing::refusal_of;
using testing::ZipWriter;

// `gap` bytes lie between the records.
FakeRecords four_records(std::uint64_t gap, Checksum::Kind kind) {
  FakeRecords records;
  records.name = "f";
  records.fields = {bytes_field("x", {"aa", "bb", "cc", "dd"})};
  records.fields[0].gap = gap;
  records.key_kind = KeyKind::kText;
  records.text_keys = {"one", "two", "three", "four"};
  records.checksums = true;
  records.checksum_kind = kind;
  records.failing = {1, 3};
  return records;
}

TEST(Verifier, SaysWhichRecordIsTheFirstThatFails) {
  for (const auto kind : {Checksum::Kind::kCrc32, Checksum::Kind::kCrc32cMasked}) {
    for (const std::uint64_t gap : {0, 4}) {
      const auto table = make_table(four_records(gap, kind));
      const Verifier& verifier = strict_verifier();
      EXPECT_TRUE(verifier.is_intact({table.get(), 0, 1}));
      EXPECT_TRUE(verifier.is_intact({table.get(), 2, 1}));
      const auto fault = verifier.fault_of({table.get(), 0, 4});
      ASSERT_TRUE(fault);
      EXPECT_EQ(fault->kind(), ErrorKind::kCorrupt);
      const std::string text = fault->what();
      EXPECT_EQ(text.find("f at byte " + std::to_string(2 + gap) +
                          ": checksum of record 1 (key two) (2 bytes) is 0x"),
                0U)
          << text;
      EXPECT_EQ(refusal_of([&] { verifier.require_intact({table.get(), 0, 4}); }).text, text);
    }
  }
}

TEST(Verifier, RemembersNothing) {
  const auto table = make_table(four_records(4, Checksum::Kind::kCrc32));
  strict_verifier().require_intact({table.get(), 0, 1});
  table->source().forget_reads();
  strict_verifier().require_intact({table.get(), 0, 1});
  EXPECT_EQ(table->source().reads(), 2U) << "the payload and its checksum";
}

TEST(Verifier, NoGuardIsIntact) {
  EXPECT_TRUE(strict_verifier().is_intact({}));
  const auto without = make_table(bytes_field("x", {"aa"}));
  EXPECT_TRUE(strict_verifier().is_intact({without.get(), 0, 1}));
}

TEST(Verifier, ATrustingOneReadsNothing) {
  const auto table = make_table(four_records(0, Checksum::Kind::kCrc32));
  EXPECT_FALSE(trusting_verifier().verifies());
  EXPECT_TRUE(strict_verifier().verifies());
  EXPECT_TRUE(trusting_verifier().is_intact({table.get(), 0, 4}));
  EXPECT_EQ(table->source().reads(), 0U);
}

TEST(Verifier, ASourceThatHasChangedIsNotDamage) {
  const auto table = make_table(four_records(0, Checksum::Kind::kCrc32));
  table->source().set_changed();
  EXPECT_EQ(refusal_of([&] {
              strict_verifier().fault_of({table.get(), 1, 1});
            }).kind,
            ErrorKind::kChanged);
}

TEST(Verifier, ComparesWithinAWindowWhatLiesThere) {
  const auto table = make_table(four_records(4, Checksum::Kind::kCrc32));
  const FakeSource& source = table->source();
  const auto bytes = std::as_bytes(std::span(source.bytes()));
  const ReadWindow window{&source, 6, bytes.subspan(6, 12)};  // records 1 and 2, with checksums
  EXPECT_TRUE(find_mismatch(*table, 1, window));
  EXPECT_FALSE(find_mismatch(*table, 2, window));
  EXPECT_EQ(source.reads(), 0U);
  EXPECT_TRUE(find_mismatch(*table, 3, window));
  EXPECT_EQ(source.reads(), 2U);
  EXPECT_NE(std::string(mismatch_error(*table, 3).what()).find("record 3 (key four) (2 bytes)"),
            std::string::npos);
}

TEST(Checksums, HaveASerialOfTheirOwn) {
  const auto one = make_table(bytes_field("x", {"aa"}));
  const auto other = make_table(bytes_field("x", {"aa"}));
  EXPECT_NE(one->serial(), other->serial());
}

TEST(ZipMembers, StoredOnesAreVerifiedWhereTheyLie) {
  ZipWriter writer;
  writer.add("a/stored", "the payload");
  writer.add("deflated", std::string(100, 'd'),
             {.method = 8, .flags = 0, .zip64 = false, .local_extra = "", .claimed_nbytes = ""});
  writer.add("other", "another one");
  writer.add("empty", "");
  std::string bytes = writer.finish();
  const ZipMembers good(std::make_shared<FakeSource>("set.zip", bytes));
  ASSERT_EQ(good.size(), 4U);
  EXPECT_TRUE(strict_verifier().is_intact({&good, 0, 4}));
  const auto checksum = good.checksum(0);
  ASSERT_TRUE(checksum);
  EXPECT_EQ(checksum->payload.offset, bytes.find("the payload"));
  EXPECT_EQ(checksum->payload.nbytes, 11U);
  EXPECT_FALSE(good.checksum(1)) << "decoding verifies it";

  bytes[bytes.find("the payload") + 10] ^= 1;
  const ZipMembers bad(std::make_shared<FakeSource>("set.zip", bytes));
  EXPECT_TRUE(strict_verifier().is_intact({&bad, 1, 3}));
  const auto fault = strict_verifier().fault_of({&bad, 0, 4});
  ASSERT_TRUE(fault);
  EXPECT_NE(std::string(fault->what()).find("record 0 (key a/stored) (11 bytes)"),
            std::string::npos)
      << fault->what();
}

TEST(ZipMembers, WhatCannotBeReadHasNoChecksum) {
  ZipWriter writer;
  writer.add("encrypted", "the payload",
             {.method = 0, .flags = 1, .zip64 = false, .local_extra = "", .claimed_nbytes = ""});
  const ZipMembers members(std::make_shared<FakeSource>("set.zip", writer.finish()));
  EXPECT_FALSE(members.checksum(0));
}

}  // namespace
}  // namespace npyfs
