// SPDX-License-Identifier: Apache-2.0
//
// Data sets shuffled, in parts and padded, against the same done by hand.

#include "formats/arrays/view.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <stdexcept>

#include "formats/arrays/record_array.h"
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

ArrayPtr find_array(const std::vector<NamedArray>& arrays, const std::string& name) {
  for (const NamedArray& array : arrays) {
    if (array.name == name) {
      return array.array;
    }
  }
  throw std::out_of_range(name);
}

// Holds what each array of a view says of the plain data against what both arrays hold: `padding`
// is what stands where the plain data has nothing.
void expect_plain_ranges(const Dataset& dataset, const std::string& name, char padding = 0) {
  const Dataset view = make_view(dataset, parse_view(name).value());
  for (const NamedArray& array : view.splits.at(0).arrays) {
    if (array.name == "perm" || array.name == "x_offsets" || array.name == "x_lengths") {
      EXPECT_EQ(array.plain, nullptr) << name << " " << array.name;
      continue;
    }
    ASSERT_NE(array.plain, nullptr) << name << " " << array.name;
    EXPECT_EQ(&array.plain->plain(), find_array(dataset.splits.at(0).arrays, array.name).get());
    const std::string plain = read_array(array.plain->plain());
    const std::string shown = read_array(*array.array);
    for (std::uint64_t begin = 0; begin <= shown.size(); begin += 1 + begin / 5) {
      for (std::uint64_t end = begin; end <= shown.size(); end += 1 + (end - begin) / 2) {
        std::string found(end - begin, padding);
        std::uint64_t at = begin;
        array.plain->find({begin, end}, [&](const PlainRange& range) {
          EXPECT_GE(range.begin, at);
          EXPECT_GT(range.nbytes, 0U);
          EXPECT_LE(range.begin + range.nbytes, end);
          EXPECT_LE(range.plain + range.nbytes, plain.size());
          found.replace(range.begin - begin, range.nbytes, plain, range.plain, range.nbytes);
          at = range.begin + range.nbytes;
          return true;
        });
        ASSERT_EQ(found, shown.substr(begin, end - begin)) << name << " " << array.name;
      }
    }
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

  void expect_shows(const std::string& name) const {
    const RecordMap order = view_map(parse_view(name).value(), 57);
    const Shown shown = show(name);
    std::string x;
    std::string y;
    Numbers offsets{0};
    Numbers keys;
    Numbers permutation;
    for (std::uint64_t place = 0; place < order.size(); ++place) {
      const std::uint64_t record = order[place].record;
      permutation.push_back(static_cast<std::int64_t>(record));
      x += x_[record];
      y += std::to_string(100 + record);
      offsets.push_back(static_cast<std::int64_t>(x.size()));
      keys.push_back(static_cast<std::int64_t>(100 + record));
    }
    ASSERT_EQ(shown.arrays.size(), 5U);
    EXPECT_EQ(read_array(*shown.arrays.at("perm")), packed(permutation));
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
    expect_shows(name);
    EXPECT_EQ(show(name).records->int_key(0), static_cast<std::int64_t>(100 + 57 * rank / 5));
  }
  expect_shows("@part=60of100");
}

// What the plain array has decoded, a view finds in the cache: both name the same chunks.
TEST(ViewOfDecoded, AsksForThePlainArraysChunks) {
  FakeRecords records;
  testing::FakeField field;
  field.typed = field.decoded = true;
  for (std::uint64_t i = 0; i < 300; ++i) {
    field.items.push_back({std::string(100, 'a'), DType::simple("|u1"), {100}});
  }
  records.fields = {field};
  const Dataset dataset =
      build_dataset({{"train", "", "train", "fake", {make_table(std::move(records))}}}, {},
                    [](const std::string&) {});
  const ArrayPtr plain = find_array(dataset.splits.at(0).arrays, "x");
  const auto chunk_of = [](const Array& array, std::uint64_t row) {
    Plan plan;
    array.plan({row * 100, row * 100 + 100}, plan);
    EXPECT_EQ(plan.pieces().size(), 1U);
    const Piece& piece = plan.pieces().front();
    EXPECT_EQ(piece.kind, Piece::Kind::kChunk);
    return std::pair(piece.chunks->serial(), piece.chunk);
  };
  for (const char* name : {"@shuffle=3", "@shuffle=1,part=1of4", "@rows=7:250"}) {
    const View view = parse_view(name).value();
    const RecordMap order = view_map(view, 300);
    const Dataset shown = make_view(dataset, view);
    const ArrayPtr x = find_array(shown.splits.at(0).arrays, "x");
    for (std::uint64_t row = 0; row < order.size(); ++row) {
      ASSERT_EQ(chunk_of(*x, row), chunk_of(*plain, order[row].record)) << name << " row " << row;
    }
  }
}

TEST_F(ViewTest, EmptyParts) {
  expect_shows("@part=0of100");
  EXPECT_EQ(show("@part=0of100").arrays.at("y")->shape(), (Shape{0, 3}));
  EXPECT_EQ(show("@part=0of100,pad").arrays.at("x")->shape(), (Shape{0, 0}));
}

TEST_F(ViewTest, Shuffled) {
  expect_shows("@shuffle=3");
  expect_shows("@part=1of4,shuffle=3");
  expect_shows("@shuffle=3,epoch=2");
  expect_shows("@shuffle=3,block=10");
  expect_shows("@shuffle=3,block=10,part=2of3,rows=5:50");
  EXPECT_EQ(show("@shuffle=3").records, nullptr);
}

TEST_F(ViewTest, RowsAndPartsOfOneLength) {
  expect_shows("@rows=10:20");
  expect_shows("@rows=50:1000,part=1of2");
  expect_shows("@rows=60:70");
  EXPECT_EQ(show("@rows=10:20").records->int_key(3), 113);
  expect_shows("@part=3of4,equal=drop");
  expect_shows("@part=3of4,equal=wrap");
  expect_shows("@shuffle=1,part=3of4,equal=wrap");
  EXPECT_EQ(show("@part=3of4,equal=drop").arrays.at("y")->shape(), (Shape{14, 3}));
  EXPECT_EQ(show("@part=3of4,equal=wrap").arrays.at("y")->shape(), (Shape{15, 3}));
}

TEST_F(ViewTest, PartsOfOneLengthAreTold) {
  const auto told = [&](const std::string& name) {
    const Dataset view = make_view(dataset_, parse_view(name).value());
    for (const DictEntry& entry : view.attributes) {
      if (entry.name == "npyfs_part") {
        return print_json(entry.value);
      }
    }
    return std::string();
  };
  EXPECT_EQ(told("@part=3of4"), "");
  const auto json = [](std::string_view text) { return print_json(parse_json(text)); };
  EXPECT_EQ(told("@part=3of4,equal=drop"),
            json(R"({"rank": 3, "world_size": 4, "equal": "drop", "left_out": {"train": 1}})"));
  EXPECT_EQ(told("@part=3of4,equal=wrap,rows=0:50"),
            json(R"({"rank": 3, "world_size": 4, "equal": "wrap", "repeated": {"train": 2}})"));
}

// What a view of a view shows is what the maps one after the other say.
TEST_F(ViewTest, ViewsOfViews) {
  const View outer = parse_view("@rows=3:17,part=1of2").value();
  for (const std::string name : {"@shuffle=3", "@rows=7:40", "@part=1of2,equal=wrap"}) {
    const View inner = parse_view(name).value();
    const RecordMap map = view_map(inner, 57);
    const RecordMap both = map.select(view_map(outer, map.size()));
    const Dataset view = make_view(make_view(dataset_, inner), outer);
    std::string x;
    for (std::uint64_t row = 0; row < both.size(); ++row) {
      x += x_[both[row].record];
    }
    for (const NamedArray& array : view.splits.at(0).arrays) {
      if (array.name == "x") {
        expect_every_slice(*array.array, x);
      }
    }
  }
}

TEST_F(ViewTest, Padded) {
  for (const std::string name : {"@pad", "@shuffle=8,pad", "@pad,part=2of3"}) {
    const View view = parse_view(name).value();
    const RecordMap order = view_map(view, 57);
    std::size_t most = 0;
    for (std::uint64_t place = 0; place < order.size(); ++place) {
      most = std::max(most, x_[order[place].record].size());
    }
    std::string padded;
    Numbers lengths;
    for (std::uint64_t place = 0; place < order.size(); ++place) {
      const std::string& item = x_[order[place].record];
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

TEST_F(ViewTest, PlainRangesAreTheSameBytes) {
  for (const std::string name :
       {"@part=1of3", "@shuffle=3", "@shuffle=3,block=10,part=2of3,rows=5:50", "@rows=60:70",
        "@rows=57:57", "@shuffle=1,part=3of4,equal=wrap", "@part=60of100", "@pad", "@shuffle=8,pad",
        "@pad,part=2of3", "@pad,part=0of100"}) {
    expect_plain_ranges(dataset_, name, '!');
  }
}

// Neighbours are one range, so that a part is read as a whole.
TEST_F(ViewTest, PlainRangesAreLong) {
  for (const char* name : {"@part=1of3", "@rows=5:50"}) {
    const Dataset view = make_view(dataset_, parse_view(name).value());
    for (const NamedArray& array : view.splits.at(0).arrays) {
      int ranges = 0;
      if (array.plain != nullptr) {
        array.plain->find({0, array.array->nbytes()}, [&](const PlainRange& range) {
          EXPECT_EQ(range.nbytes, array.array->nbytes());
          ++ranges;
          return true;
        });
        EXPECT_EQ(ranges, 1) << name << " " << array.name;
      }
    }
  }
  const Dataset shuffled = make_view(dataset_, parse_view("@shuffle=3").value());
  int ranges = 0;
  shuffled.splits.at(0).arrays.at(0).plain->find({0, 400},
                                                 [&](const PlainRange&) { return ++ranges < 3; });
  EXPECT_EQ(ranges, 3) << "it goes on after it was stopped";
}

TEST(PlainRanges, OfPaddedArraysAreWholeSlots) {
  DatasetOptions options;
  options.fields.layout["x"] = Layout::kPad;
  const Dataset dataset = build_dataset(
      {{"train", "", "train", "fake", {make_table(bytes_field("x", {"ab", "", "cdefg", "h"}))}}},
      options, [](const std::string&) {});
  expect_plain_ranges(dataset, "@shuffle=2");
  expect_plain_ranges(dataset, "@pad,rows=1:3");
}

// A view of a mount that is itself a view: its own array is the plain one.
TEST_F(ViewTest, PlainRangesOfAViewOfAView) {
  const Dataset shuffled = make_view(dataset_, parse_view("@shuffle=5,rows=3:40").value());
  Dataset mounted = shuffled;
  std::erase_if(mounted.splits.at(0).arrays,
                [](const NamedArray& array) { return array.name == "perm"; });
  expect_plain_ranges(mounted, "@shuffle=2,part=0of2");
  expect_plain_ranges(mounted, "@pad", '!');
}

TEST(PlainRanges, OfNarrowerTextLackItsEnd) {
  FakeRecords records;
  records.fields = {bytes_field("x", {"1", "2", "3", "4"})};
  records.key_kind = KeyKind::kText;
  records.text_keys = {"a", "be", "", "long key"};
  const Dataset dataset =
      build_dataset({{"train", "", "train", "fake", {make_table(std::move(records))}}}, {},
                    [](const std::string&) {});
  for (const char* name : {"@part=0of2", "@part=1of2", "@shuffle=1", "@rows=0:1"}) {
    expect_plain_ranges(dataset, name);
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
    return find_array(view.splits.at(0).arrays, "keys");
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
      return find_array(view.splits.at(0).arrays, "txt")->dtype().text();
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

TEST(SelectFortranRows, KeepsFortranOrder) {
  const ArrayPtr last =
      select_fortran_rows(std::make_shared<FortranArray>(), RecordMap::range({1, 3}));
  EXPECT_EQ(last->shape(), (Shape{2, 4}));
  EXPECT_TRUE(last->fortran_order());
  EXPECT_EQ(read_array(*last), "bcefhikl");
}

}  // namespace
}  // namespace npyfs
