// SPDX-License-Identifier: Apache-2.0
//
// Rows of one table for the records of another.

#include "formats/tables/join.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <random>

#include "formats/tables/key_map.h"
#include "tests/formats/records.h"
#include "tests/support/fake_table.h"

namespace npyfs {
namespace {

using testing::bytes_field;
using testing::FakeRecords;
using testing::make_table;
using testing::refusal_of;
using Rows = std::vector<std::uint64_t>;

std::shared_ptr<const RecordTable> numbered(const std::vector<std::int64_t>& keys) {
  FakeRecords records;
  records.fields = {bytes_field("x", std::vector<std::string>(keys.size(), "x"))};
  records.key_kind = KeyKind::kInteger;
  records.int_keys = keys;
  return make_table(std::move(records));
}

std::shared_ptr<const RecordTable> named(const std::vector<std::string>& keys) {
  FakeRecords records;
  records.fields = {bytes_field("x", std::vector<std::string>(keys.size(), "x"))};
  records.key_kind = KeyKind::kText;
  records.text_keys = keys;
  return make_table(std::move(records));
}

std::shared_ptr<const RecordTable> without_keys(std::size_t count) {
  return make_table(bytes_field("x", std::vector<std::string>(count, "x")));
}

Join join(const std::shared_ptr<const RecordTable>& first,
          const std::shared_ptr<const RecordTable>& joined) {
  return join_rows(*first, *joined, "FIRST", "JOINED");
}

constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

TEST(JoinRows, FindsIntegerKeys) {
  const Join found =
      join(numbered({5, kLeast, -3, kMost, 5}), numbered({kMost, 5, -3, 100, kLeast}));
  EXPECT_EQ(found.rows, (Rows{1, 4, 2, 0, 1}));
  EXPECT_TRUE(found.missing.empty());
}

TEST(JoinRows, FindsTextKeys) {
  const Join found =
      join(named({"b", "", "a/b", "\xff", "B"}), named({"\xff", "a/b", "B", "b", "", "unused"}));
  EXPECT_EQ(found.rows, (Rows{3, 4, 1, 0, 2}));
  EXPECT_TRUE(found.missing.empty());
}

TEST(JoinRows, ListsWhatIsMissing) {
  EXPECT_EQ(join(numbered({4, 1, 3, 2}), numbered({1, 2})).missing, (Rows{0, 2}));
  EXPECT_EQ(join(named({"x", "a", "y"}), named({"a"})).missing, (Rows{0, 2}));
  EXPECT_EQ(join(named({"a", "b"}), named({})).missing, (Rows{0, 1}));
}

TEST(JoinRows, TakesIntegersForTheTextTheyPrintAs) {
  const auto numbers = numbered({7, -1, 0, kLeast});
  const auto texts = named({"0", "-9223372036854775808", "7", "-1", "07", "x", ""});
  EXPECT_EQ(join(numbers, texts).rows, (Rows{2, 3, 0, 1}));
  const Join back = join(texts, numbers);
  EXPECT_EQ(back.missing, (Rows{4, 5, 6}));
  EXPECT_EQ(back.rows[0], 2U);
  EXPECT_EQ(back.rows[1], 3U);
  EXPECT_EQ(back.rows[2], 0U);
  EXPECT_EQ(back.rows[3], 1U);
}

TEST(JoinRows, TakesNoTextForANumberThatIsNotSpeltLikeIt) {
  const auto numbers = numbered({7, 0});
  EXPECT_EQ(
      join(named({"+7", " 7", "7 ", "7.0", "-0", "99999999999999999999"}), numbers).missing.size(),
      6U);
}

TEST(JoinRows, RefusesKeysThatTheJoinedTableHasTwice) {
  const auto numbers = refusal_of([] { join(numbered({1}), numbered({3, 1, 3})); });
  EXPECT_EQ(numbers.kind, ErrorKind::kCorrupt);
  EXPECT_NE(numbers.text.find("JOINED: key 3 "), std::string::npos) << numbers.text;
  const auto texts = refusal_of([] { join(named({"a"}), named({"k\n", "a", "k\n"})); });
  EXPECT_EQ(texts.kind, ErrorKind::kCorrupt);
  EXPECT_NE(texts.text.find("key k\\x0a "), std::string::npos) << texts.text;
}

TEST(JoinRows, GoesRowByRowWhereOneHasNoKeys) {
  EXPECT_EQ(join(without_keys(3), numbered({9, 8, 7})).rows, (Rows{0, 1, 2}));
  EXPECT_EQ(join(numbered({9, 9, 9}), without_keys(3)).rows, (Rows{0, 1, 2}));
  EXPECT_TRUE(join(without_keys(0), without_keys(0)).rows.empty());
  const auto unequal = refusal_of([] { join(without_keys(3), without_keys(4)); });
  EXPECT_EQ(unequal.kind, ErrorKind::kCorrupt);
  EXPECT_NE(unequal.text.find("JOINED: it has 4 records, FIRST has 3"), std::string::npos)
      << unequal.text;
}

TEST(JoinRows, IsLikeAMapAtRandom) {
  for (std::uint32_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    std::vector<std::int64_t> keys(40);
    for (std::size_t i = 0; i < keys.size(); ++i) {
      keys[i] = static_cast<std::int64_t>(i) * 3 - 50;
    }
    std::shuffle(keys.begin(), keys.end(), random);
    std::map<std::int64_t, std::uint64_t> model;
    for (std::size_t row = 0; row < keys.size(); ++row) {
      model[keys[row]] = row;
    }
    std::vector<std::int64_t> asked(30);
    std::vector<std::string> asked_text;
    for (std::int64_t& key : asked) {
      key = static_cast<std::int64_t>(random() % 140) - 60;
      asked_text.push_back(std::to_string(key));
    }
    for (const Join& found :
         {join(numbered(asked), numbered(keys)), join(named(asked_text), numbered(keys))}) {
      Rows missing;
      for (std::size_t i = 0; i < asked.size(); ++i) {
        const auto row = model.find(asked[i]);
        if (row == model.end()) {
          missing.push_back(i);
        } else {
          ASSERT_EQ(found.rows[i], row->second);
        }
      }
      ASSERT_EQ(found.missing, missing);
    }
  }
}

TEST(MapKeys, TakesIntegersAsTheTextTheyPrintAs) {
  const testing::TemporaryFolder folder;
  testing::write_file(folder / "map", "7 seven\n-3 minus\n");
  const TablePtr mapped = map_keys(numbered({-3, 7}), folder / "map", strict_verifier());
  ASSERT_EQ(mapped->key_kind(), KeyKind::kText);
  EXPECT_EQ(mapped->text_key(0), "minus");
  EXPECT_EQ(mapped->text_key(1), "seven");
  EXPECT_NE(refusal_of([&] {
              map_keys(numbered({8}), folder / "map", strict_verifier());
            }).text.find("it lacks record"),
            std::string::npos);
}

// Texts of 4 characters, stored in another form or not.
FakeRecords records_of_speakers(bool decoded) {
  std::vector<std::pair<Shape, std::string>> texts;
  for (const std::u32string speaker : {U"anna", U"bert", U"carl"}) {
    texts.push_back({{}, {reinterpret_cast<const char*>(speaker.data()), 16}});
  }
  FakeRecords records;
  records.fields = {testing::typed_field("utt2spk", "<U4", texts)};
  records.fields[0].decoded = decoded;
  records.checksums = true;
  return records;
}

TEST(MapKeys, AreTheTextsOfAField) {
  for (const bool decoded : {false, true}) {
    const TablePtr mapped =
        map_keys(make_table(records_of_speakers(decoded)), "utt2spk", strict_verifier());
    ASSERT_EQ(mapped->key_kind(), KeyKind::kText);
    EXPECT_EQ(mapped->text_key(0), "anna");
    EXPECT_EQ(mapped->text_key(2), "carl");
  }
}

TEST(MapKeys, ATextThatDoesNotMatchItsChecksumIsNoKey) {
  for (const bool decoded : {false, true}) {
    FakeRecords records = records_of_speakers(decoded);
    records.failing = {1};
    const TablePtr table = make_table(records);
    const auto refused = refusal_of([&] { map_keys(table, "utt2spk", strict_verifier()); });
    EXPECT_EQ(refused.kind, ErrorKind::kCorrupt);
    EXPECT_NE(refused.text.find("record 1"), std::string::npos) << refused.text;
    EXPECT_EQ(map_keys(table, "utt2spk", trusting_verifier())->text_key(2), "carl");
  }
}

TEST(MapKeys, SaysThatThereAreNoKeys) {
  const testing::TemporaryFolder folder;
  testing::write_file(folder / "map", "0 zero\n");
  const auto refused =
      refusal_of([&] { map_keys(without_keys(1), folder / "map", strict_verifier()); });
  EXPECT_EQ(refused.kind, ErrorKind::kUsage);
  EXPECT_NE(refused.text.find("the records of fake have no keys"), std::string::npos)
      << refused.text;
}

}  // namespace
}  // namespace npyfs
