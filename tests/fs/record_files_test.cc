// SPDX-License-Identifier: Apache-2.0
//
// Files below records/: every file has one name, and every name finds its file.

#include "fs/record_files.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <random>
#include <set>
#include <utility>

#include "formats/arrays/names.h"
#include "tests/support/fake_table.h"
#include "tests/support/read_plan.h"

namespace npyfs {
namespace {

using testing::bytes_field;
using testing::fake_damage;
using testing::FakeRecords;
using testing::make_table;
using testing::read_plan;
using testing::refusal_of;
using std::string_literals::operator""s;
using Strings = std::vector<std::string>;

FakeRecords with_text_keys(const Strings& keys) {
  FakeRecords records;
  records.fields = {bytes_field("x", Strings(keys.size(), "payload"))};
  records.key_kind = KeyKind::kText;
  records.text_keys = keys;
  return records;
}

FakeRecords with_int_keys(const std::vector<std::int64_t>& keys) {
  FakeRecords records;
  records.fields = {bytes_field("x", Strings(keys.size(), "payload"))};
  records.key_kind = KeyKind::kInteger;
  records.int_keys = keys;
  return records;
}

// All names; each has been found to be a file name, no other file's, and to find its own.
Strings names_of(const RecordFiles& files) {
  Strings names;
  std::set<std::string> seen;
  for (std::uint64_t file = 0; file < files.count(); ++file) {
    if (!files.exists(file)) {
      continue;
    }
    const std::string name = files.name(file);
    EXPECT_LE(name.size(), 255U) << name;
    EXPECT_EQ(name.find_first_of("/\0"s), std::string::npos) << name;
    EXPECT_TRUE(seen.insert(name).second) << name << " stands there twice";
    EXPECT_EQ(files.find(name), file) << name;
    names.push_back(name);
  }
  return names;
}

Strings names_of(FakeRecords records) { return names_of(RecordFiles(make_table(records))); }

TEST(RecordFiles, AreCalledByTheirNumberWithoutKeys) {
  const RecordFiles files(make_table(bytes_field("x", Strings(12, "a"))));
  EXPECT_EQ(files.count(), 12U);
  const Strings names = names_of(files);
  EXPECT_EQ(names.front(), "0.bin");
  EXPECT_EQ(names.back(), "11.bin");
  for (const std::string name :
       {"12.bin", "00.bin", "+1.bin", "-1.bin", "1", "1.", ".bin", "", ".", "..", "1.jpg",
        "1.bin.bin", "1~2.bin", " 1.bin", "18446744073709551616.bin", "0x1.bin"}) {
    EXPECT_EQ(files.find(name), std::nullopt) << name;
  }
}

TEST(RecordFiles, AreCalledByIntegerKeys) {
  constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  const FakeRecords records = with_int_keys({7, -3, kMost, 7, 0, kLeast, 7, 2});
  EXPECT_EQ(names_of(records), (Strings{"7.bin", "-3.bin", "9223372036854775807.bin", "7~2.bin",
                                        "0.bin", "-9223372036854775808.bin", "7~3.bin", "2.bin"}));
  const RecordFiles files(make_table(records));
  for (const std::string name :
       {"1.bin", "7~1.bin", "7~4.bin", "7~02.bin", "07.bin", "7~.bin", "-0.bin", "2~2.bin",
        "9223372036854775808.bin", "x.bin", "~2.bin", "7~18446744073709551616.bin"}) {
    EXPECT_EQ(files.find(name), std::nullopt) << name;
  }
}

TEST(RecordFiles, AreCalledByTextKeys) {
  EXPECT_EQ(names_of(with_text_keys({"b", "a.b", "~", "\xc3\xa9", "a b", "\n"})),
            (Strings{"b.bin", "a.b.bin", "~.bin", "\xc3\xa9.bin", "a b.bin", "\n.bin"}));
}

TEST(RecordFiles, NumberTheRecordsOfOneKey) {
  EXPECT_EQ(names_of(with_text_keys({"a", "b", "a", "a", "b"})),
            (Strings{"a.bin", "b.bin", "a~2.bin", "a~3.bin", "b~2.bin"}));
}

TEST(RecordFiles, PassOverNumbersThatAreKeysThemselves) {
  EXPECT_EQ(names_of(with_text_keys({"a", "a~2", "a", "a~4", "a", "a~2", "a"})),
            (Strings{"a.bin", "a~2.bin", "a~3.bin", "a~4.bin", "a~5.bin", "a~2~2.bin", "a~6.bin"}));
  const RecordFiles files(make_table(with_text_keys({"a", "a", "b"})));
  for (const std::string name : {"a~1.bin", "a~3.bin", "a~02.bin", "b~2.bin", "a~.bin", "~2.bin"}) {
    EXPECT_EQ(files.find(name), std::nullopt) << name;
  }
}

TEST(RecordFiles, EscapeTheirKeys) {
  EXPECT_EQ(
      names_of(with_text_keys({"a/b", ".", "..", "", "a\0b"s, "100%", "..."})),
      (Strings{"a%2Fb.bin", "%2E.bin", "%2E%2E.bin", "%.bin", "a%00b.bin", "100%.bin", "....bin"}));
  EXPECT_EQ(names_of(with_text_keys({"a/b", "a/b", "/", "/"})),
            (Strings{"a%2Fb.bin", "a%2Fb~2.bin", "%2F.bin", "%2F~2.bin"}));
}

// Keys as they come from URLs, alone or beside what they look like once escaped.
TEST(RecordFiles, KeepApartKeysThatLookEscaped) {
  names_of(with_text_keys({"%2F", "%2Fx", "%2Fx", "%2E", "a%00b"}));
  names_of(with_text_keys({"x/%2F"}));
  names_of(with_text_keys({"a%2Fb", "a/b"}));
  names_of(with_text_keys({"a/b", "a%2Fb", "a/b", "a%2Fb~2"}));
  names_of(with_text_keys({".", "%2E", "..", "%2E%2E", "", "%"}));
  names_of(with_text_keys({"", "", "%", "%"}));
}

// The order is that of the names, whatever the bytes: else two keys of one name are not neighbours.
TEST(RecordFiles, FindKeysOfAnyBytes) {
  EXPECT_EQ(names_of(with_text_keys({"\xe2\xc3\xa9x", "\xe2\x82\xac", "\xe2\xc3\xa9x"})),
            (Strings{"%E2\xc3\xa9x.bin", "\xe2\x82\xac.bin", "%E2\xc3\xa9x~2.bin"}));
  const std::uint32_t seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const std::string alphabet = "a\xe2\x82\xac\xc3\xa9\xf0\x9f/\xed\xa0"s;
  for (int round = 0; round < 200; ++round) {
    Strings keys(60);
    for (std::string& key : keys) {
      for (std::size_t n = random() % 7; n > 0; --n) {
        key += alphabet[random() % alphabet.size()];
      }
    }
    names_of(with_text_keys(keys));
  }
}

TEST(RecordFiles, ShortenNamesThatAreTooLong) {
  const std::string a(300, 'a');
  const Strings names = names_of(with_text_keys(
      {a, a + "b", a, std::string(251, 'c'), std::string(252, 'c'), std::string(251, 'c'),
       std::string(200, 'd'), std::string(100, '/'), std::string(100, '/') + "e", a + "~2"}));
  ASSERT_EQ(names.size(), 10U);
  EXPECT_EQ(names[0], shorten_name(a, 4) + ".bin");
  EXPECT_EQ(names[3], std::string(251, 'c') + ".bin");
  EXPECT_EQ(names[4].size(), 217U + 4);
  EXPECT_EQ(names[6], std::string(200, 'd') + ".bin");
  const RecordFiles files(make_table(with_text_keys({a})));
  EXPECT_EQ(files.find(a + ".bin"), std::nullopt);
  EXPECT_EQ(files.find(std::string(200, 'a') + "~0123456789abcdef.bin"), std::nullopt);
  EXPECT_EQ(files.find(std::string(200, 'a') + ".bin"), std::nullopt);
}

TEST(RecordFiles, FindTheirNamesAtRandom) {
  const Strings words{"a",   "b",  "/", "%", "%2F",  "%2E", "~",
                      "~2",  "~3", "2", ".", ".bin", "\0"s, std::string(90, 'l'),
                      "\xff"};
  for (std::uint32_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    Strings keys;
    const std::size_t vocabulary = 3 + random() % (words.size() - 2);
    const std::size_t first = random() % words.size();
    for (std::size_t i = 0; i < 40; ++i) {
      std::string key;
      for (std::size_t n = random() % 5; n > 0; --n) {
        key += words[(first + random() % vocabulary) % words.size()];
      }
      keys.push_back(key);
    }
    names_of(with_text_keys(keys));
    if (HasFailure()) {
      return;
    }
  }
}

TEST(RecordFiles, HaveTheExtensionOfTheirContent) {
  const FakeRecords records = [] {
    FakeRecords made;
    made.fields = {bytes_field(
        "x", {"\xff\xd8\xff\xe0...", "\x93NUMPY...", "text", "", "\x89PNG\r\n\x1a\n..."})};
    return made;
  }();
  EXPECT_EQ(names_of(records), (Strings{"0.jpg", "1.npy", "2.bin", "3.bin", "4.png"}));
  EXPECT_EQ(RecordFiles(make_table(records)).find("0.bin"), std::nullopt);
}

TEST(RecordFiles, AreOneForEachPartOfARecord) {
  FakeRecords records = with_text_keys({"k", "k", "l"});
  records.fields[0].extension = "seg.png";
  records.fields[0].items[2].present = false;
  records.fields.push_back(bytes_field("y", {"1", "22", "333"}));
  records.fields[1].extension = "txt";
  const RecordFiles files(make_table(records));
  EXPECT_EQ(files.count(), 6U);
  EXPECT_EQ(names_of(files), (Strings{"k.seg.png", "k.txt", "k~2.seg.png", "k~2.txt", "l.txt"}));
  EXPECT_FALSE(files.exists(4));
  EXPECT_EQ(files.find("l.seg.png"), std::nullopt);
  EXPECT_EQ(files.nbytes(5), 3U);
}

TEST(RecordFiles, GiveTheirStoredBytes) {
  const RecordFiles files(make_table(bytes_field("x", {"abc", "", "defgh"})));
  const auto read = [&](std::uint64_t file, ByteRange range) {
    Plan plan;
    files.plan_read(file, range, plan);
    return read_plan(plan);
  };
  EXPECT_EQ(files.nbytes(2), 5U);
  EXPECT_EQ(read(2, {0, 5}), "defgh");
  EXPECT_EQ(read(2, {1, 3}), "ef");
  EXPECT_EQ(read(2, {3, 1000}), "gh") << "clipped at the end";
  EXPECT_EQ(read(2, {5, 10}), "");
  EXPECT_EQ(read(2, {7, 10}), "");
  EXPECT_EQ(read(0, {0, 4096}), "abc") << "not the neighbour's";
  EXPECT_EQ(read(1, {0, 10}), "");
}

TEST(RecordFiles, ADamagedRecordIsThereAndCanBeRefused) {
  FakeRecords records = with_text_keys({"a", "b", "c"});
  records.damage.emplace(1, fake_damage("b is bad", 1000));
  records.damage.emplace(2, fake_damage("c is bad", 0));
  const RecordFiles files(make_table(records));
  EXPECT_EQ(names_of(files), (Strings{"a.bin", "b.bin", "c.bin"}));
  EXPECT_EQ(files.nbytes(1), 1000U);
  EXPECT_EQ(files.nbytes(2), 1U);
  Plan plan;
  files.plan_read(1, {990, 2000}, plan);
  EXPECT_EQ(plan.nbytes(), 10U);
  EXPECT_EQ(refusal_of([&] { read_plan(plan); }).text, "b is bad");
}

TEST(RecordFiles, ServeManyRecordsOfOneKey) {
  constexpr std::uint64_t kCount = 200'000;
  const RecordFiles texts(make_table(with_text_keys(Strings(kCount, "same"))));
  const RecordFiles numbers(make_table(with_int_keys(std::vector<std::int64_t>(kCount, 5))));
  for (std::uint64_t file = 1; file < kCount; file += 997) {
    const std::string number = std::to_string(file + 1);
    ASSERT_EQ(texts.name(file), "same~" + number + ".bin");
    ASSERT_EQ(texts.find("same~" + number + ".bin"), file);
    ASSERT_EQ(numbers.name(file), "5~" + number + ".bin");
    ASSERT_EQ(numbers.find("5~" + number + ".bin"), file);
  }
}

// Counts how often it is asked for a key.
class CountingTable : public testing::FakeTable {
 public:
  using FakeTable::FakeTable;
  std::string_view text_key(std::uint64_t record) const override {
    ++asked;
    return FakeTable::text_key(record);
  }
  mutable std::uint64_t asked = 0;  // one thread
};

// Of keys that a hostile list may have: the work is that of sorting them, not that of comparing
// each with each.
TEST(RecordFiles, AskForAFewKeysForEachName) {
  constexpr std::uint64_t kCount = 1000;
  const std::string start(220, 's');
  const std::vector<std::pair<std::string, std::function<std::string(std::string)>>> others{
      {"a", [](const std::string& n) { return "a~" + n; }},
      {"a", [](const std::string& n) { return "a~x" + n; }},
      {"a", [](const std::string& n) { return "a~2~" + n; }},
      {start, [&](const std::string& n) { return start + n + std::string(40, 'e'); }},
      {start + std::string(40, 'e'), [&](const std::string& n) { return start + "~" + n; }}};
  for (const auto& [key, other] : others) {
    SCOPED_TRACE(other("7"));
    Strings keys(kCount, key);
    for (std::uint64_t i = 0; i < kCount; ++i) {
      keys.push_back(other(std::to_string(i)));
    }
    const auto table = std::make_shared<const CountingTable>(with_text_keys(keys));
    names_of(RecordFiles(table));
    EXPECT_LT(table->asked, 2 * kCount * 250);
  }
}

}  // namespace
}  // namespace npyfs
