// SPDX-License-Identifier: Apache-2.0
//
// Data sets of several sources: which rows stand beside each other, and what is said about it.

#include <gmock/gmock.h>

#include "formats/arrays/dataset.h"
#include "tests/arrays/review_tables.h"

namespace npyfs::testing {

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using TestTablePtr = std::shared_ptr<MemoryTable>;

TestTablePtr table_of(const std::string& name, const std::vector<std::optional<std::string>>& x) {
  auto table = std::make_shared<MemoryTable>(name);
  table->add_bytes("x", x);
  return table;
}

TestTablePtr with_keys(TestTablePtr table, std::vector<std::string> keys) {
  table->state().key_kind = KeyKind::kText;
  table->state().text_keys = std::move(keys);
  return table;
}

class DatasetReview : public ::testing::Test {
 protected:
  void add(const std::string& array, std::vector<TestTablePtr> tables) {
    OpenedSource source{"train", array, tables.front()->asked().name, "test", {}};
    source.tables.assign(tables.begin(), tables.end());
    sources_.push_back(std::move(source));
  }
  Dataset build() {
    return build_dataset(sources_, options_,
                         [&](const std::string& text) { warnings_.push_back(text); });
  }
  std::string refusal(ErrorKind kind) {
    try {
      build();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), kind) << error.what();
      return error.what();
    }
    return "accepted";
  }
  static std::string bytes_of(const Dataset& dataset, const std::string& name) {
    for (const NamedArray& array : dataset.splits.at(0).arrays) {
      if (array.name == name) {
        return read_all(*array.array);
      }
    }
    return "no " + name;
  }

  std::vector<OpenedSource> sources_;
  DatasetOptions options_;
  std::vector<std::string> warnings_;
};

TEST_F(DatasetReview, WhatAKeylessJoinLeavesOutIsLeftOutOfAllMembers) {
  auto images = table_of("images", {"a", "b", "c", "d", "e"});
  images->state().damage.emplace(1, damage_at("images: b is cut", 1));
  auto labels = table_of("labels", {"0", "1", "2", "3", "4"});
  labels->state().damage.emplace(3, damage_at("labels: 3 is cut", 1));
  add("", {images});
  add("y", {labels});
  options_.permissive = true;
  const Dataset dataset = build();
  EXPECT_EQ(bytes_of(dataset, "x"), "ace");
  EXPECT_EQ(bytes_of(dataset, "y"), "024");
  EXPECT_THAT(warnings_, ElementsAre("images: b is cut; left out", "labels: 3 is cut; left out"));
}

// Knows the one record that is bad.
class KnownBad : public Verifier {
 public:
  explicit KnownBad(std::function<std::uint64_t(const Guard&)> bad) : bad_(std::move(bad)) {}
  bool verifies() const override { return true; }

 private:
  std::optional<Error> find_fault(const Guard& guard, const ReadWindow& /*window*/) const override {
    const std::uint64_t bad = bad_(guard);
    if (guard.first > bad || bad >= guard.first + guard.count) {
      return std::nullopt;
    }
    return Error(ErrorKind::kCorrupt, "checksum of " + std::to_string(bad));
  }

  std::function<std::uint64_t(const Guard&)> bad_;
};

TEST_F(DatasetReview, WhatFailsItsChecksumIsLeftOutOfAllMembers) {
  auto images = table_of("images", {"a", "b", "c", "d"});
  images->state().verified = true;
  auto labels = table_of("labels", {"0", "1", "2", "3"});
  labels->state().verified = true;
  add("", {images});
  add("y", {labels});
  options_.permissive = true;
  options_.verify = Verify::kMount;
  const KnownBad verifier(
      [&](const Guard& guard) { return guard.checksums == images.get() ? 0U : 2U; });
  options_.fields.verifier = &verifier;
  const Dataset dataset = build();
  EXPECT_EQ(bytes_of(dataset, "x"), "bd");
  EXPECT_EQ(bytes_of(dataset, "y"), "13");
}

TEST_F(DatasetReview, VerifiesManyRecordsAtOnceAndCountsEachOnce) {
  auto table = std::make_shared<MemoryTable>("parts");
  table->state().verified = true;
  const std::vector<std::optional<std::string>> payloads(10'000, "p");
  table->add_bytes("wav", payloads);
  table->add_bytes("txt", payloads);
  add("", {table});
  options_.verify = Verify::kMount;
  std::uint64_t calls = 0;
  const KnownBad verifier([&](const Guard& /*guard*/) {
    ++calls;
    return 7777U;
  });
  options_.fields.verifier = &verifier;
  build();
  EXPECT_THAT(warnings_, ElementsAre("checksum of 7777 (1 of 10000 records fail)"));
  EXPECT_LT(calls, 10'000U);
}

// Of three records, in both of their fields.
class TwoKindsOfDamage : public Verifier {
 public:
  bool verifies() const override { return true; }

 private:
  std::optional<Error> find_fault(const Guard& guard, const ReadWindow& /*window*/) const override {
    for (std::uint64_t record = guard.first; record < guard.first + guard.count; ++record) {
      if (record == 10 || record == 30) {
        return Error(ErrorKind::kCorrupt, "checksum of " + std::to_string(record));
      }
      if (record == 20) {
        return Error(ErrorKind::kCorrupt, "20 is cut");
      }
    }
    return std::nullopt;
  }
};

TEST_F(DatasetReview, VerifyTellsTheFirstAndTheCountOfEachKindOfDamage) {
  auto table = std::make_shared<MemoryTable>("parts");
  table->state().verified = true;
  const std::vector<std::optional<std::string>> payloads(40, "p");
  table->add_bytes("wav", payloads);
  table->add_bytes("txt", payloads);
  add("", {table});
  options_.verify = Verify::kMount;
  const TwoKindsOfDamage verifier;
  options_.fields.verifier = &verifier;
  build();
  EXPECT_THAT(warnings_, ElementsAre("checksum of 10 (2 of 40 records fail)",
                                     "20 is cut (1 of 40 records fail)"));
}

TEST_F(DatasetReview, RefusesDuplicateKeysInTheFirstSourceOfAJoin) {
  add("", {with_keys(table_of("first", {"a", "b", "c"}), {"k1", "k2", "k1"})});
  add("y", {with_keys(table_of("joined", {"0", "1"}), {"k1", "k2"})});
  const std::string text = refusal(ErrorKind::kCorrupt);
  EXPECT_THAT(text, HasSubstr("first"));
  EXPECT_THAT(text, HasSubstr("k1"));
}

TEST_F(DatasetReview, DuplicateKeysAloneAreNoError) {
  add("", {with_keys(table_of("first", {"a", "b", "c"}), {"k1", "k2", "k1"})});
  EXPECT_EQ(bytes_of(build(), "x"), "abc");
}

TEST_F(DatasetReview, SaysWhichShardsDisagreeAboutKeys) {
  add("", {with_keys(table_of("a.rec", {"a"}), {"k"}), table_of("b.rec", {"b"})});
  const Dataset dataset = build();
  EXPECT_EQ(bytes_of(dataset, "keys"), "no keys");
  ASSERT_EQ(warnings_.size(), 1U);
  EXPECT_THAT(warnings_[0], HasSubstr("a.rec"));
  EXPECT_THAT(warnings_[0], HasSubstr("b.rec"));
}

TEST_F(DatasetReview, RefusesToJoinShardsThatDisagreeAboutKeys) {
  add("", {with_keys(table_of("a.rec", {"a"}), {"k"}), table_of("b.rec", {"b"})});
  add("y", {table_of("labels", {"0", "1"})});
  const std::string text = refusal(ErrorKind::kUnsupported);
  EXPECT_THAT(text, HasSubstr("a.rec"));
  EXPECT_THAT(text, HasSubstr("b.rec"));
}

TEST_F(DatasetReview, AnEmptyShardHasNothingToSayAboutKeys) {
  add("", {with_keys(table_of("a.rec", {"a"}), {"k"}), table_of("empty.rec", {})});
  EXPECT_NE(bytes_of(build(), "keys"), "no keys");
  EXPECT_TRUE(warnings_.empty());
}

// Of items, one is damaged as only inspecting them shows, and one is absent.
TEST_F(DatasetReview, SaysEachWarningOnceThoughItLaysOutTwice) {
  auto table = std::make_shared<MemoryTable>("set", 4);
  std::vector<MemoryItem> items = {
      {{1}, "a"}, {{1}, "b", true, false, damage_at("set: b is cut")}, {{}, "", false}, {{1}, "d"}};
  table->add_typed("x", std::make_shared<MemoryColumn>("|u1", items));
  add("", {table});
  options_.permissive = true;
  const Dataset dataset = build();
  EXPECT_EQ(bytes_of(dataset, "x"), "ad");
  EXPECT_THAT(warnings_, ElementsAre("set: b is cut; left out",
                                     "set: record 1 lacks x; its rows are left empty"));
}

}  // namespace

}  // namespace npyfs::testing
