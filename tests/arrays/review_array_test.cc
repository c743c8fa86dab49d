// SPDX-License-Identifier: Apache-2.0
//
// Fields of records as arrays: any slice against a plain model, and what a slice costs.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <random>

#include "formats/arrays/layout.h"
#include "tests/arrays/review_tables.h"

namespace npyfs::testing {

namespace {

LaidOutField lay(std::shared_ptr<const Column> column, Layout layout,
                 const std::string& pad_value = "0") {
  auto table = std::make_shared<MemoryTable>("set", column->size());
  table->add_typed("x", std::move(column));
  FieldChoices choices;
  choices.layout["x"] = layout;
  choices.pad_value = pad_value;
  return lay_out("x", table->fields()[0], table, choices, [](const std::string&) {});
}

std::vector<MemoryItem> decoded_items(const std::vector<std::uint64_t>& rows) {
  std::vector<MemoryItem> items;
  for (const std::uint64_t n : rows) {
    items.push_back({{n}, std::string(n, 'x'), true, true});
  }
  return items;
}

// What a reader of one byte at `offset` makes decode.
std::string chunk_at(const Array& array, std::uint64_t offset) {
  Plan plan;
  array.plan({offset, offset + 1}, plan);
  EXPECT_EQ(plan.pieces().size(), 1U);
  const Piece& piece = plan.pieces().front();
  EXPECT_EQ(piece.kind, Piece::Kind::kChunk);
  return decode_chunk(*piece.chunks, piece.chunk);
}

TEST(ArrayReview, ASmallItemIsNotDecodedWithALargeOne) {
  std::vector<std::uint64_t> rows(1000, 1);
  rows[500] = 20'000'000;
  const LaidOutField laid =
      lay(std::make_shared<MemoryColumn>("|u1", decoded_items(rows)), Layout::kConcat);
  const Array& array = *laid.arrays[0].array;
  for (const std::uint64_t offset : {0, 499, 20'000'500, 20'000'998}) {
    EXPECT_LE(chunk_at(array, offset).size(), 64U << 10) << offset;
  }
  EXPECT_EQ(chunk_at(array, 10'000'000).size(), 20'000'000U);
}

TEST(ArrayReview, AGroupHasNeitherManyBytesNorManyRecords) {
  std::mt19937 random(7);
  std::vector<std::uint64_t> rows;
  for (int i = 0; i < 5000; ++i) {
    rows.push_back(random() % 10 == 0 ? random() % 100'000 : random() % 3 * (random() % 2000));
  }
  auto column = std::make_shared<MemoryColumn>("|u1", decoded_items(rows));
  const LaidOutField laid = lay(column, Layout::kConcat);
  std::uint64_t offset = 0;
  for (const std::uint64_t n : rows) {
    if (n > 0) {
      const std::uint64_t before = column->decodes_asked;
      const std::uint64_t nbytes = chunk_at(*laid.arrays[0].array, offset).size();
      ASSERT_LE(nbytes, std::max<std::uint64_t>(64 << 10, n));
      ASSERT_LE(column->decodes_asked - before, 64U);
      offset += n;
    }
  }
}

TEST(ArrayReview, OneOfManySmallValuesDecodesFewRecords) {
  auto column = std::make_shared<MemoryColumn>("|u1", [] {
    std::vector<MemoryItem> items(20'000, {{}, "x", true, true});
    return items;
  }());
  const LaidOutField laid = lay(column, Layout::kAuto);
  chunk_at(*laid.arrays[0].array, 10'000);
  EXPECT_LE(column->decodes_asked, 64U);
}

TEST(ArrayReview, ARunEndsAtTheNextDamagedRecord) {
  std::vector<MemoryItem> items(100'000, {{1}, "x"});
  items[40'000].damage = damage_at("set: 40000 is cut", 1);
  auto column = std::make_shared<MemoryColumn>("|u1", std::move(items));
  const LaidOutField laid = lay(column, Layout::kAuto);
  std::string expected(100'000, 'x');
  expected[40'000] = '?';
  EXPECT_EQ(read_all(*laid.arrays[0].array), expected);
  EXPECT_LE(column->plans_asked, 4U);
}

std::uint32_t test_seed() {
  const char* given = std::getenv("NPYFS_TEST_SEED");
  return given != nullptr ? static_cast<std::uint32_t>(std::strtoul(given, nullptr, 10))
                          : std::random_device()();
}

// A column at random, and what its three layouts must read as.
struct Model {
  std::vector<MemoryItem> items;
  std::uint64_t row_elements;
  bool ragged;
  std::uint64_t most_rows = 0;

  explicit Model(std::mt19937& random) : row_elements(1 + random() % 3), ragged(random() % 3 > 0) {
    const std::uint64_t records = 1 + random() % 300;
    const std::uint64_t odd_one_in = 1 + random() % 40;
    const std::uint64_t longest = random() % 10 == 0 ? 40'000 : 1 + random() % 300;
    const std::uint64_t usual = random() % 50;
    const bool only_mapped = random() % 3 == 0;
    bool decoded = random() % 2 == 0;
    bool unlike = false;  // else damaged items take the shape that all others have
    for (std::uint64_t record = 0; record < records; ++record) {
      const bool odd = record > 0 && random() % odd_one_in == 0;
      const bool damaged = odd && random() % 3 == 0;
      const std::uint64_t rows = ragged && odd && (unlike || !damaged) ? random() % longest : usual;
      MemoryItem item{{rows, row_elements}, {}, true, decoded && !only_mapped};
      for (std::uint64_t i = 0; i < rows * row_elements * 2; ++i) {
        item.bytes += static_cast<char>('A' + random() % 26);
      }
      if (damaged) {
        item.damage = damage_at("set: a record is cut", item.bytes.size());
      } else if (ragged && odd && random() % 4 == 0) {
        item.present = false;
        item.shape = {};
        item.bytes.clear();
      }
      unlike |= !item.damage && (!item.present || rows != usual);
      if (random() % 20 == 0) {
        decoded = !decoded;
      }
      most_rows = std::max(most_rows, item.bytes.size() / (row_elements * 2));
      items.push_back(std::move(item));
    }
  }

  std::string concatenated() const {
    std::string all;
    for (const MemoryItem& item : items) {
      all += item.damage ? std::string(item.bytes.size(), '?') : item.bytes;
    }
    return all;
  }
  // A damaged item's slot cannot be read at all.
  std::string padded(const std::string& element) const {
    const std::uint64_t slot_nbytes = most_rows * row_elements * 2;
    std::string all;
    for (const MemoryItem& item : items) {
      std::string slot = item.damage ? std::string(slot_nbytes, '?') : item.bytes;
      while (slot.size() < slot_nbytes) {
        slot += element;
      }
      all += slot;
    }
    return all;
  }
};

void expect_slices(const Array& array, const std::string& expected, std::mt19937& random) {
  ASSERT_EQ(array.nbytes(), expected.size());
  ASSERT_TRUE(read_all(array) == expected);
  for (int i = 0; i < 40; ++i) {
    const std::uint64_t begin = random() % (expected.size() + 1);
    const std::uint64_t nbytes = std::min<std::uint64_t>(random() % (random() % 2 == 0 ? 20 : 5000),
                                                         expected.size() - begin);
    ASSERT_TRUE(read_range(array, {begin, begin + nbytes}) == expected.substr(begin, nbytes))
        << begin << "+" << nbytes;
  }
}

TEST(ArrayReview, AnySliceIsThatOfAPlainModel) {
  const std::uint32_t seed = test_seed();
  for (std::uint32_t round = 0; round < 30; ++round) {
    SCOPED_TRACE("NPYFS_TEST_SEED=" + std::to_string(seed) + ", round " + std::to_string(round));
    std::mt19937 random(seed + round);
    const Model model(random);
    const auto column = std::make_shared<MemoryColumn>("<u2", model.items);
    const LaidOutField concatenated = lay(column, Layout::kConcat);
    expect_slices(*concatenated.arrays[0].array, model.concatenated(), random);
    const LaidOutField padded = lay(column, Layout::kPad, "513");
    expect_slices(*padded.arrays[0].array, model.padded(std::string("\x01\x02", 2)), random);
    if (!model.ragged) {
      const LaidOutField stacked = lay(column, Layout::kStack);
      expect_slices(*stacked.arrays[0].array, model.concatenated(), random);
    }
    if (HasFatalFailure()) {
      return;
    }
  }
}

}  // namespace

}  // namespace npyfs::testing
