// SPDX-License-Identifier: Apache-2.0
//
// Data sets shuffled, in parts and padded, against the same done by hand.

#include "formats/arrays/view.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "formats/arrays/selected_array.h"
#include "tests/support/fake_table.h"
#include "tests/support/read_plan.h"

namespace npyfs {
namespace {

using testing::bytes_field;
using testing::FakeRecords;
using testing::make_table;
using testing::packed;
using testing::read_array;
using Strings = std::vector<std::string>;
using Numbers = std::vector<std::int64_t>;

TEST(ParseView, KnowsItsWords) {
  const auto view = parse_view("@part=3of16,shuffle=7,pad");
  ASSERT_TRUE(view);
  EXPECT_EQ(view->shuffle_seed, 7U);
  EXPECT_EQ(view->part.rank, 3U);
  EXPECT_EQ(view->part.world_size, 16U);
  EXPECT_TRUE(view->pad);
  EXPECT_TRUE(parse_view("@pad"));
  EXPECT_TRUE(parse_view("@shuffle=18446744073709551615"));
}

TEST(ParseView, TakesNothingElse) {
  for (const char* name : {"",
                           "@",
                           "pad",
                           "@pad=",
                           "@pad,pad",
                           "@pad,",
                           "@,pad",
                           "@nonsense",
                           "@nonsense=1",
                           "@part",
                           "@part=",
                           "@part=0of0",
                           "@part=2of2",
                           "@part=1of",
                           "@part=of2",
                           "@part=-1of2",
                           "@part=1of1000001",
                           "@part=18446744073709551of20000000000000000",
                           "@part=0of2,part=1of2",
                           "@shuffle",
                           "@shuffle=",
                           "@shuffle=x",
                           "@shuffle=1x",
                           "@shuffle=18446744073709551616",
                           "@shuffle=1,shuffle=2",
                           "@Pad"}) {
    EXPECT_FALSE(parse_view(name)) << name;
  }
}

TEST(RecordOrder, ShufflesEachRecordToOnePlace) {
  for (const std::uint64_t count : {0, 1, 2, 3, 4, 5, 16, 17, 1000, 4097}) {
    const RecordOrder order(count, 5, {});
    std::set<std::uint64_t> seen;
    for (std::uint64_t place = 0; place < order.size(); ++place) {
      seen.insert(order[place]);
    }
    EXPECT_EQ(seen.size(), count);
    EXPECT_TRUE(seen.empty() || *seen.rbegin() == count - 1);
  }
}

TEST(RecordOrder, DependsOnTheSeedAloneAndMovesMostRecords) {
  const RecordOrder order(10'000, 1, {});
  const RecordOrder other(10'000, 2, {});
  std::uint64_t same = 0;
  std::uint64_t rising = 0;
  for (std::uint64_t place = 0; place < order.size(); ++place) {
    EXPECT_EQ(order[place], RecordOrder(10'000, 1, {})[place]);
    same += order[place] == other[place] ? 1 : 0;
    rising += place > 0 && order[place] > order[place - 1] ? 1 : 0;
  }
  EXPECT_LT(same, 20U);
  EXPECT_NEAR(static_cast<double>(rising), 5000, 300);
}

TEST(RecordOrder, PartsAreThoseOfTheShuffledRecords) {
  const RecordOrder all(100, 9, {});
  const RecordOrder part(100, 9, {1, 3});
  ASSERT_EQ(part.size(), 33U);
  for (std::uint64_t place = 0; place < part.size(); ++place) {
    EXPECT_EQ(part[place], all[33 + place]);
  }
}

struct Shown {
  std::map<std::string, std::shared_ptr<const Array>> arrays;
  std::shared_ptr<const RecordTable> records;
};

// Two fields: ragged x, and y of three bytes each; integer keys 100, 101, ...
class ViewTest : public ::testing::Test {
 protected:
  ViewTest() {
    std::mt19937 random(4);
    FakeRecords records;
    Strings y;
    for (std::int64_t i = 0; i < 57; ++i) {
      x_.push_back(std::string(random() % 6, static_cast<char>('a' + i % 26)));
      y.push_back(std::to_string(100 + i));
      records.int_keys.push_back(100 + i);
    }
    records.fields = {bytes_field("x", x_), bytes_field("y", y)};
    records.key_kind = KeyKind::kInteger;
    DatasetOptions options;
    options.fields.pad_value = "33";  // !
    dataset_ = build_dataset({{"train", "", "train", "fake", {make_table(std::move(records))}}},
                             options, [](const std::string&) {});
  }

  Shown show(const std::string& name) const {
    const Dataset view = make_view(dataset_, parse_view(name).value());
    Shown shown;
    for (const NamedArray& array : view.splits.at(0).arrays) {
      shown.arrays.emplace(array.name, array.array);
    }
    shown.records = view.splits[0].records;
    return shown;
  }

  static void expect_every_slice(const Array& array, const std::string& bytes) {
    ASSERT_EQ(array.nbytes(), bytes.size());
    for (std::uint64_t begin = 0; begin <= bytes.size(); begin += 1 + begin / 7) {
      for (std::uint64_t end = begin; end <= bytes.size(); end += 1 + (end - begin) / 3) {
        ASSERT_EQ(read_array(array, {begin, end}), bytes.substr(begin, end - begin));
      }
    }
  }

  void expect_shows(const std::string& name, const RecordOrder& order) const {
    const Shown shown = show(name);
    std::string x;
    std::string y;
    Numbers offsets{0};
    Numbers keys;
    for (std::uint64_t place = 0; place < order.size(); ++place) {
      const std::uint64_t record = order[place];
      x += x_[record];
      y += std::to_string(100 + record);
      offsets.push_back(static_cast<std::int64_t>(x.size()));
      keys.push_back(static_cast<std::int64_t>(100 + record));
    }
    ASSERT_EQ(shown.arrays.size(), 4U);
    expect_every_slice(*shown.arrays.at("x"), x);
    expect_every_slice(*shown.arrays.at("y"), y);
    EXPECT_EQ(shown.arrays.at("y")->shape(), (Shape{order.size(), 3}));
    EXPECT_EQ(read_array(*shown.arrays.at("x_offsets")), packed(offsets));
    EXPECT_EQ(read_array(*shown.arrays.at("keys")), packed(keys));
  }

  Strings x_;
  Dataset dataset_;
};

TEST_F(ViewTest, Parts) {
  for (std::uint64_t rank = 0; rank < 5; ++rank) {
    const std::string name = "@part=" + std::to_string(rank) + "of5";
    expect_shows(name, RecordOrder(57, std::nullopt, {rank, 5}));
    EXPECT_EQ(show(name).records->int_key(0), static_cast<std::int64_t>(100 + 57 * rank / 5));
  }
  expect_shows("@part=60of100", RecordOrder(57, std::nullopt, {60, 100}));
}

TEST_F(ViewTest, EmptyParts) {
  expect_shows("@part=0of100", RecordOrder(57, std::nullopt, {0, 100}));
  EXPECT_EQ(show("@part=0of100").arrays.at("y")->shape(), (Shape{0, 3}));
  EXPECT_EQ(show("@part=0of100,pad").arrays.at("x")->shape(), (Shape{0, 0}));
}

TEST_F(ViewTest, Shuffled) {
  expect_shows("@shuffle=3", RecordOrder(57, 3, {}));
  expect_shows("@part=1of4,shuffle=3", RecordOrder(57, 3, {1, 4}));
  EXPECT_EQ(show("@shuffle=3").records, nullptr);
}

TEST_F(ViewTest, Padded) {
  for (const std::string name : {"@pad", "@shuffle=8,pad", "@pad,part=2of3"}) {
    const View view = parse_view(name).value();
    const RecordOrder order(57, view.shuffle_seed, view.part);
    std::size_t most = 0;
    for (std::uint64_t place = 0; place < order.size(); ++place) {
      most = std::max(most, x_[order[place]].size());
    }
    std::string padded;
    Numbers lengths;
    for (std::uint64_t place = 0; place < order.size(); ++place) {
      const std::string& item = x_[order[place]];
      padded += item + std::string(most - item.size(), '!');
      lengths.push_back(static_cast<std::int64_t>(item.size()));
    }
    const Shown shown = show(name);
    expect_every_slice(*shown.arrays.at("x"), padded);
    EXPECT_EQ(shown.arrays.at("x")->shape(), (Shape{order.size(), most}));
    EXPECT_EQ(read_array(*shown.arrays.at("x_lengths")), packed(lengths));
    EXPECT_EQ(shown.arrays.count("x_offsets"), 0U);
  }
}

TEST(MakeView, TextIsAsWideAsItsLongest) {
  FakeRecords records;
  records.fields = {bytes_field("x", {"1", "2", "3", "4"})};
  records.key_kind = KeyKind::kText;
  records.text_keys = {"a",
                       "\xc3\xa9"
                       "e",
                       "", "long key"};
  const Dataset dataset =
      build_dataset({{"train", "", "train", "fake", {make_table(std::move(records))}}}, {},
                    [](const std::string&) {});
  const auto keys_of = [&](const std::string& name) {
    const Dataset view = make_view(dataset, parse_view(name).value());
    return view.splits.at(0).arrays.at(0).array;
  };
  EXPECT_EQ(keys_of("@part=0of2")->dtype().text(), "<U2");
  EXPECT_EQ(read_array(*keys_of("@part=0of2")), packed(std::vector<char32_t>{'a', 0, 0xe9, 'e'}));
  EXPECT_EQ(keys_of("@part=1of2")->dtype().text(), "<U8");
  EXPECT_EQ(keys_of("@part=2of4")->dtype().text(), "<U1");
  EXPECT_EQ(keys_of("@shuffle=1")->dtype().text(), "<U8");
}

TEST(MakeView, ReadsFewTextsToKnowTheirWidth) {
  constexpr std::uint64_t kRecords = 1000;
  for (const std::string letter : {"a", "\xe7\xb1\xbb"}) {
    std::vector<std::string> texts;
    for (std::uint64_t i = 0; i < kRecords; ++i) {
      std::string text;
      for (std::uint64_t n = 0; n < 10 + i * 7919 % 40 + (i == kRecords - 1 ? 50 : 0); ++n) {
        text += letter;
      }
      texts.push_back(text);
    }
    testing::FakeField field = bytes_field("txt", texts);
    field.extension = "txt";
    const auto table = make_table(field);
    const Dataset dataset =
        build_dataset({{"train", "", "train", "fake", {table}}}, {}, [](const std::string&) {});
    const auto dtype_of = [&](const std::string& name) {
      const Dataset view = make_view(dataset, parse_view(name).value());
      return view.splits.at(0).arrays.at(0).array->dtype().text();
    };
    ASSERT_EQ(dataset.splits.at(0).arrays.at(0).name, "txt");
    ASSERT_EQ(dataset.splits.at(0).arrays.at(0).array->dtype().text(), "<U61");
    table->source().forget_reads();
    EXPECT_EQ(dtype_of("@part=0of2"), "<U49");
    EXPECT_EQ(dtype_of("@part=1of2"), "<U61");
    EXPECT_EQ(dtype_of("@shuffle=3,part=1of500"), dtype_of("@shuffle=3,part=1of500"));
    EXPECT_LT(table->source().reads(), 100U);
    // What cannot be read is no reason to show nothing.
    table->source().set_failing(true);
    EXPECT_NO_THROW(dtype_of("@part=0of2"));
    EXPECT_EQ(dtype_of("@part=1of2"), "<U61");
  }
}

// 3 x 4 in Fortran order: a row is every third byte.
class FortranArray : public Array {
 public:
  FortranArray() : Array(DType::simple("|u1"), {3, 4}) {}
  bool fortran_order() const override { return true; }
  std::string storage() const override { return "mapped"; }
  void plan(ByteRange range, Plan& plan) const override {
    plan.add_memory(std::as_bytes(std::span(kBytes)).data() + range.begin, range.nbytes());
  }

 private:
  static constexpr std::string_view kBytes = "abcdefghijkl";
};

TEST(SelectArrayRows, KeepsFortranOrder) {
  const ArrayPtr last =
      select_array_rows(std::make_shared<FortranArray>(), RecordOrder(3, std::nullopt, {1, 2}));
  EXPECT_EQ(last->shape(), (Shape{2, 4}));
  EXPECT_TRUE(last->fortran_order());
  EXPECT_EQ(read_array(*last), "bcefhikl");
}

}  // namespace
}  // namespace npyfs
