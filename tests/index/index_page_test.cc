// SPDX-License-Identifier: Apache-2.0
//
// What is written to a page is read from it, and nothing else is.

#include "formats/bytes/index_page.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "formats/bytes/compact_numbers.h"
#include "formats/bytes/extent_column.h"
#include "formats/bytes/record_set.h"
#include "formats/bytes/string_list.h"
#include "formats/damage_list.h"

namespace npyfs {
namespace {

// Aligned as a mapped page is.
using Page = std::vector<std::uint64_t>;

template <typename Write>
Page page_of(const Write& write) {
  std::vector<std::byte> bytes;
  PageWriter writer([&](std::span<const std::byte> more) {
    bytes.insert(bytes.end(), more.begin(), more.end());
  });
  write(writer);
  EXPECT_EQ(bytes.size() % sizeof(std::uint64_t), 0U);
  Page page(bytes.size() / sizeof(std::uint64_t));
  if (!bytes.empty()) {
    std::memcpy(page.data(), bytes.data(), bytes.size());
  }
  return page;
}

PageReader reader_of(const Page& page) { return {std::as_bytes(std::span(page)), nullptr}; }

std::vector<std::uint64_t> all_of(const CompactNumbers& numbers) {
  std::vector<std::uint64_t> all;
  for (std::uint64_t i = 0; i < numbers.size(); ++i) {
    all.push_back(numbers[i]);
  }
  return all;
}

TEST(IndexPage, GivesBackWhatWasWritten) {
  const std::vector<std::uint32_t> array = {7, 8, 9};
  const Page page = page_of([&](PageWriter& writer) {
    writer.number(42);
    writer.text("keys and \n such");
    writer.array(std::span(array));
    writer.optional(std::nullopt);
    writer.optional(5);
    writer.flag(true);
    writer.text("");
  });
  PageReader reader = reader_of(page);
  EXPECT_EQ(reader.number(), 42U);
  EXPECT_EQ(reader.text(), "keys and \n such");
  const auto read = reader.array<std::uint32_t>(3);
  EXPECT_EQ(std::vector<std::uint32_t>(read.begin(), read.end()), array);
  EXPECT_EQ(reader.optional(), std::nullopt);
  EXPECT_EQ(reader.optional(), 5U);
  EXPECT_TRUE(reader.flag());
  EXPECT_EQ(reader.text(), "");
  reader.require_end();
}

TEST(IndexPage, RefusesWhatIsNotThere) {
  const std::vector<std::uint32_t> array(5, 1);
  const Page page = page_of([&](PageWriter& writer) { writer.array(std::span(array)); });
  EXPECT_THROW(reader_of(page).array<std::uint64_t>(), Error) << "of another itemsize";
  EXPECT_THROW(reader_of(page).array<std::uint32_t>(6), Error);
  EXPECT_THROW(reader_of(page).number(4), Error);
  EXPECT_THROW(reader_of(page).require_end(), Error);
  EXPECT_THROW(reader_of({}).number(), Error);
  // Sizes that no page has.
  for (const std::uint64_t size : {std::uint64_t{7}, UINT64_MAX, UINT64_MAX / 4 + 1}) {
    Page lying = page;
    lying[0] = size;
    EXPECT_THROW(reader_of(lying).array<std::uint32_t>(), Error) << size;
  }
}

TEST(CompactNumbers, HoldAnyNumbers) {
  std::mt19937_64 random(5);
  const auto check = [](const std::vector<std::uint64_t>& numbers) {
    CompactNumbers compact;
    for (const std::uint64_t number : numbers) {
      compact.append(number);
    }
    compact.shrink();
    EXPECT_EQ(all_of(compact), numbers);
    const Page page = page_of([&](PageWriter& writer) { compact.write(writer); });
    PageReader reader = reader_of(page);
    EXPECT_EQ(all_of(CompactNumbers::read(reader)), numbers);
    reader.require_end();
    return page.size() * sizeof(std::uint64_t);
  };
  check({});
  check({7});
  check({0, UINT64_MAX, 1, UINT64_MAX / 2});
  check({10, 9, 8, 7});
  std::vector<std::uint64_t> numbers;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    numbers.push_back(100 + 24 * i);
  }
  EXPECT_LE(check(numbers), 32U) << "a progression is four numbers";
  for (const std::size_t odd :
       {std::size_t{1}, std::size_t{63}, std::size_t{64}, std::size_t{999}}) {
    std::vector<std::uint64_t> some = numbers;
    some[odd] += 1;
    EXPECT_LE(check(some), 1000 * 4 + 16 * 8 + 64U) << "neighbours are near " << odd;
    some[odd] = std::uint64_t{1} << 40;
    check(some);
  }
  for (int round = 0; round < 200; ++round) {
    const int bits = static_cast<int>(random() % 64) + 1;
    std::vector<std::uint64_t> some(random() % 300);
    for (std::uint64_t& number : some) {
      number = random() >> (64 - bits);
    }
    check(some);
  }
}

TEST(ExtentColumn, IsKeptInAPage) {
  ExtentColumn column;
  for (std::uint64_t i = 0; i < 200; ++i) {
    column.append(1000 * i + i % 7, 900 + i % 3);
  }
  const Page page = page_of([&](PageWriter& writer) { column.write(writer); });
  PageReader reader = reader_of(page);
  const ExtentColumn read = ExtentColumn::read(reader);
  ASSERT_EQ(read.size(), column.size());
  EXPECT_EQ(read.equal(), column.equal());
  for (std::uint64_t i = 0; i < column.size(); ++i) {
    EXPECT_EQ(read[i].offset, column[i].offset);
    EXPECT_EQ(read[i].nbytes, column[i].nbytes);
  }
}

TEST(StringList, IsKeptInAPage) {
  StringList list;
  const std::vector<std::string> texts = {"", "a", std::string(5000, 'x'), "", "last"};
  for (const std::string& text : texts) {
    list.append(text);
  }
  const Page page = page_of([&](PageWriter& writer) { list.write(writer); });
  PageReader reader = reader_of(page);
  const StringList read = StringList::read(reader);
  ASSERT_EQ(read.size(), texts.size());
  for (std::size_t i = 0; i < texts.size(); ++i) {
    EXPECT_EQ(list[i], texts[i]);
    EXPECT_EQ(read[i], texts[i]);
  }
}

TEST(RecordSet, IsKeptInAPage) {
  RecordSet set;
  for (const std::uint64_t record : {3ULL, 4ULL, 70000ULL, 1ULL << 40}) {
    set.add(record);
  }
  set.optimize();
  const Page page = page_of([&](PageWriter& writer) { set.write(writer); });
  PageReader reader = reader_of(page);
  const RecordSet read = RecordSet::read(reader);
  EXPECT_EQ(read.size(), 4U);
  EXPECT_TRUE(read.contains(1ULL << 40));
  EXPECT_FALSE(read.contains(5));
}

TEST(DamageList, IsKeptInAPage) {
  DamageList list;
  for (std::uint64_t record = 0; record < 3000; ++record) {
    const Error error = corrupt_at("a file", record, record % 2 == 0 ? "it is odd" : "it is even");
    list.add(2 * record, error.said(), [&] { return Damage{error, record, std::nullopt}; });
  }
  list.shrink();
  const Page page = page_of([&](PageWriter& writer) { list.write(writer); });
  PageReader reader = reader_of(page);
  const DamageList read = DamageList::read(reader);
  reader.require_end();
  ASSERT_EQ(read.size(), list.size());
  EXPECT_EQ(read.list(), list.list());
  for (const std::uint64_t record : {0, 2, 2046, 2048, 5998}) {
    ASSERT_NE(read.find(record), nullptr) << record;
    EXPECT_STREQ(read.find(record)->error.what(), list.find(record)->error.what());
    EXPECT_EQ(read.find(record)->error.said(), list.find(record)->error.said());
    EXPECT_EQ(read.find(record)->nbytes, list.find(record)->nbytes);
  }
  EXPECT_EQ(read.find(1), nullptr);
}

// Whatever a page holds, reading it ends with what it holds or with kCorrupt.
TEST(IndexPage, SurvivesAnyBytes) {
  std::mt19937_64 random(11);
  DamageList list;
  list.add(5, "odd", [] { return Damage{corrupt_at("f", 1, "odd"), 4}; });
  StringList keys;
  keys.append("some key");
  keys.append("another one");
  CompactNumbers numbers;
  for (const std::uint64_t number : {1, 5, 6}) {
    numbers.append(number);
  }
  const Page whole = page_of([&](PageWriter& writer) {
    list.write(writer);
    keys.write(writer);
    numbers.write(writer);
  });
  int read = 0;
  for (int round = 0; round < 20000; ++round) {
    Page page = whole;
    auto* const bytes = reinterpret_cast<unsigned char*>(page.data());
    for (std::uint64_t flips = random() % 3; flips > 0; --flips) {
      bytes[random() % (page.size() * 8)] ^= static_cast<unsigned char>(1U << (random() % 8));
    }
    page.resize(page.size() - (random() % 4 == 0 ? random() % page.size() : 0));
    try {
      PageReader reader = reader_of(page);
      const DamageList damage = DamageList::read(reader);
      const StringList texts = StringList::read(reader);
      const CompactNumbers some = CompactNumbers::read(reader);
      for (std::uint64_t i = 0; i < std::min<std::uint64_t>(texts.size(), 1000); ++i) {
        read += static_cast<int>(std::count(texts[i].begin(), texts[i].end(), 'k'));
      }
      read += damage.find(5) != nullptr ? 1 : 0;
      read += static_cast<int>(some.size() > 0 ? some[some.size() - 1] % 2 : 0);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kCorrupt);
    }
  }
  EXPECT_GT(read, 0);
}

}  // namespace
}  // namespace npyfs
