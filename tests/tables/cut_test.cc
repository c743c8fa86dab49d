// SPDX-License-Identifier: Apache-2.0
//
// One split cut into several.

#include "formats/tables/cut.h"

#include <gtest/gtest.h>

#include <map>

#include "tests/support/fake_table.h"

namespace npyfs {
namespace {

using testing::bytes_field;
using testing::FakeRecords;
using testing::make_table;
using testing::refusal_of;
using Strings = std::vector<std::string>;
using Records = std::vector<std::uint64_t>;

std::shared_ptr<const RecordTable> named(const Strings& keys) {
  FakeRecords records;
  records.fields = {bytes_field("x", Strings(keys.size(), "x"))};
  records.key_kind = KeyKind::kText;
  records.text_keys = keys;
  return make_table(std::move(records));
}

Strings numbered_keys(std::size_t count) {
  Strings keys;
  for (std::size_t i = 0; i < count; ++i) {
    keys.push_back("utt-" + std::to_string(i));
  }
  return keys;
}

Records records_of(const RecordMap& rows) {
  Records records;
  for (std::uint64_t row = 0; row < rows.size(); ++row) {
    records.push_back(rows[row].record);
  }
  return records;
}

std::map<std::string, Records> cut(const RecordTable& table, const SplitRule& rule) {
  std::map<std::string, Records> splits;
  for (const NamedRows& split : cut_splits(table, rule, "table")) {
    EXPECT_TRUE(splits.emplace(split.split, records_of(split.rows)).second) << split.split;
  }
  return splits;
}

TEST(CutSplits, ByListLeavesTheRestToTrain) {
  SplitRule rule;
  rule.lists = {{"val", {"d", "b"}}, {"test", {"e"}}};
  const auto splits = cut(*named({"a", "b", "c", "d", "e", "b"}), rule);
  EXPECT_EQ(splits,
            (std::map<std::string, Records>{{"train", {0, 2}}, {"val", {1, 3, 5}}, {"test", {4}}}));
}

TEST(CutSplits, ByListOfIndexesWhereThereAreNoKeys) {
  SplitRule rule;
  rule.lists = {{"val", {"2", "0"}}, {"train", {"3"}}};
  const auto splits = cut(*make_table(bytes_field("x", {"a", "b", "c", "d"})), rule);
  EXPECT_EQ(splits, (std::map<std::string, Records>{{"train", {1, 3}}, {"val", {0, 2}}}));
}

TEST(CutSplits, RefusesListsThatCannotBeMet) {
  const auto table = named({"a", "b"});
  SplitRule rule;
  rule.lists = {{"val", {"a", "nobody"}}};
  EXPECT_EQ(refusal_of([&] { cut_splits(*table, rule, "t.ark"); }).text,
            "t.ark: it has no record 'nobody', expected each that --split-list val names");
  rule.lists = {{"val", {"a"}}, {"test", {"b", "a"}}};
  EXPECT_EQ(refusal_of([&] { cut_splits(*table, rule, "t.ark"); }).text,
            "--split-list: 'a' is in the lists of val and test, expected one");
}

TEST(CutSplits, BySharesKeepsEachRecordWhereItWas) {
  SplitRule rule;
  rule.shares = {{"train", 0.8}, {"val", 0.1}, {"test", 0.1}};
  const auto few = cut(*named(numbered_keys(1000)), rule);
  const auto many = cut(*named(numbered_keys(10'000)), rule);
  std::size_t sum = 0;
  for (const auto& [name, records] : few) {
    sum += records.size();
    ASSERT_GE(many.at(name).size(), records.size());
    EXPECT_TRUE(std::equal(records.begin(), records.end(), many.at(name).begin())) << name;
  }
  EXPECT_EQ(sum, 1000U);
  EXPECT_NEAR(static_cast<double>(many.at("train").size()), 8000, 200);
  EXPECT_NEAR(static_cast<double>(many.at("val").size()), 1000, 150);
}

TEST(CutSplits, ByAnotherSeedGivesOtherRecords) {
  SplitRule rule;
  rule.shares = {{"train", 0.5}, {"val", 0.5}};
  const auto table = named(numbered_keys(1000));
  const auto first = cut(*table, rule);
  EXPECT_EQ(cut(*table, rule), first);
  rule.seed = 1;
  EXPECT_NE(cut(*table, rule), first);
}

// A share may be nothing.
TEST(CutSplits, ByShareOfNothing) {
  SplitRule rule;
  rule.shares = {{"train", 1}, {"val", 0}};
  const auto splits = cut(*named(numbered_keys(50)), rule);
  EXPECT_EQ(splits.at("train").size(), 50U);
  EXPECT_TRUE(splits.at("val").empty());
}

}  // namespace
}  // namespace npyfs
