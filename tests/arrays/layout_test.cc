// SPDX-License-Identifier: Apache-2.0
//
// Fields become arrays: what shape they get, what bytes they hold, and what is said about them.

#include "formats/arrays/layout.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <random>

#include "formats/arrays/items.h"
#include "formats/arrays/record_array.h"
#include "formats/bytes/npy_header.h"
#include "formats/damage_list.h"
#include "tests/support/fake_table.h"
#include "tests/support/read_plan.h"

namespace npyfs {
namespace {

using testing::bytes_field;
using testing::fake_damage;
using testing::FakeField;
using testing::FakeRecords;
using testing::make_table;
using testing::packed;
using testing::read_array;
using testing::read_what_can_be;
using testing::Refusal;
using testing::refusal_of;
using testing::typed_field;
using std::string_literals::operator""s;
using Strings = std::vector<std::string>;

struct Laid {
  LaidOutField field;
  Strings warnings;

  const Array& operator[](const std::string& name) const {
    for (const LaidOutArray& laid : field.arrays) {
      if (laid.name == name) {
        return *laid.array;
      }
    }
    throw std::out_of_range("there is no array " + name);
  }
  Strings names() const {
    Strings all;
    for (const LaidOutArray& laid : field.arrays) {
      all.push_back(laid.name);
    }
    return all;
  }
};

// The first field of the table.
Laid lay(const TablePtr& table, const FieldChoices& choices = {}) {
  Laid laid;
  const Field& field = table->fields().at(0);
  laid.field = lay_out(field.name, field, table, choices,
                       [&](const std::string& text) { laid.warnings.push_back(text); });
  return laid;
}

Laid lay(const FakeField& field, const FieldChoices& choices = {}) {
  return lay(make_table(field), choices);
}

Laid lay(FakeRecords records, const FieldChoices& choices = {}) {
  return lay(make_table(std::move(records)), choices);
}

FieldChoices layout(Layout layout, const std::string& pad_value = "0") {
  FieldChoices choices;
  choices.layout["x"] = layout;
  choices.pad_value = pad_value;
  return choices;
}

FieldChoices declared(const std::string& dtype, std::optional<Shape> shape = {}) {
  FieldChoices choices;
  if (!dtype.empty()) {
    choices.dtype["x"] = *DType::from_user(dtype);
  }
  if (shape) {
    choices.shape["x"] = *shape;
  }
  return choices;
}

std::string offsets(const std::vector<std::int64_t>& numbers) { return packed(numbers); }

void expect_array(const Array& array, const std::string& dtype, const Shape& shape,
                  const std::string& bytes) {
  EXPECT_EQ(array.dtype().text(), dtype);
  EXPECT_EQ(array.shape(), shape);
  EXPECT_EQ(array.nbytes(), bytes.size());
  EXPECT_EQ(read_array(array), bytes);
}

// Every slice of the array is the slice of the whole.
void expect_slices(const Array& array) {
  const std::string whole = read_array(array);
  ASSERT_EQ(whole.size(), array.nbytes());
  for (std::uint64_t begin = 0; begin <= whole.size(); ++begin) {
    for (std::uint64_t end = begin; end <= whole.size(); ++end) {
      ASSERT_EQ(read_array(array, {begin, end}), whole.substr(begin, end - begin))
          << begin << " to " << end;
    }
  }
}

TEST(LayOut, StacksEqualBytes) {
  const Laid laid = lay(bytes_field("x", {"abc", "def", "ghi"}));
  EXPECT_EQ(laid.names(), Strings{"x"});
  expect_array(laid["x"], "|u1", {3, 3}, "abcdefghi");
  EXPECT_EQ(laid["x"].storage(), "mapped");
  expect_slices(laid["x"]);
  EXPECT_TRUE(laid.warnings.empty());
  Plan plan;
  laid["x"].plan({1, 8}, plan);
  EXPECT_EQ(plan.pieces().size(), 1U) << "they lie back to back";
}

TEST(LayOut, PutsUnequalBytesOneAfterAnother) {
  const Laid laid = lay(bytes_field("x", {"", "abc", "", "", "d", "ef", ""}));
  EXPECT_EQ(laid.names(), (Strings{"x", "x_offsets"}));
  expect_array(laid["x"], "|u1", {6}, "abcdef");
  expect_array(laid["x_offsets"], "<i8", {8}, offsets({0, 0, 3, 3, 3, 4, 6, 6}));
  EXPECT_EQ(laid["x_offsets"].storage(), "computed");
  expect_slices(laid["x"]);
}

TEST(LayOut, TakesTheLayoutThatIsAskedFor) {
  const FakeField equal = bytes_field("x", {"ab", "cd"});
  expect_array(lay(equal, layout(Layout::kStack))["x"], "|u1", {2, 2}, "abcd");
  expect_array(lay(equal, layout(Layout::kBytes))["x"], "|u1", {2, 2}, "abcd");
  const Laid concat = lay(equal, layout(Layout::kConcat));
  expect_array(concat["x"], "|u1", {4}, "abcd");
  expect_array(concat["x_offsets"], "<i8", {3}, offsets({0, 2, 4}));
  const Laid pad = lay(equal, layout(Layout::kPad));
  expect_array(pad["x"], "|u1", {2, 2}, "abcd");
  expect_array(pad["x_lengths"], "<i8", {2}, offsets({2, 2}));
}

TEST(LayOut, PadsToTheLongest) {
  const Laid laid = lay(bytes_field("x", {"a", "", "bcd", "ef"}), layout(Layout::kPad, "42"));
  EXPECT_EQ(laid.names(), (Strings{"x", "x_lengths"}));
  expect_array(laid["x"], "|u1", {4, 3}, "a*****bcdef*");
  expect_array(laid["x_lengths"], "<i8", {4}, offsets({1, 0, 3, 2}));
  expect_slices(laid["x"]);
}

TEST(LayOut, PadsRowsOfSeveralElements) {
  const FakeField field =
      typed_field("x", "<i2", {{{1, 2}, "abcd"}, {{0, 2}, ""}, {{2, 2}, "efghijkl"}});
  const Laid laid = lay(field, layout(Layout::kPad, "16705"));  // "AA"
  expect_array(laid["x"], "<i2", {3, 2, 2}, "abcdAAAAAAAAAAAAefghijkl");
  expect_slices(laid["x"]);
}

TEST(LayOut, PaddingTakesNoRoomInTheCache) {
  constexpr std::size_t kLong = std::size_t{1} << 20;
  FakeField field =
      typed_field("x", "|u1", {{{3}, "abc"}, {{kLong}, std::string(kLong, 'o')}, {{2}, "de"}});
  field.decoded = true;
  const Laid laid = lay(field, layout(Layout::kPad, "42"));
  EXPECT_EQ(read_array(laid["x"], {0, 5}), "abc**");
  EXPECT_EQ(read_array(laid["x"], {2 * kLong, 2 * kLong + 4}), "de**");
  Plan plan;
  laid["x"].plan({0, laid["x"].nbytes()}, plan);
  std::vector<std::uint64_t> chunks;
  for (const Piece& piece : plan.pieces()) {
    if (piece.kind == Piece::Kind::kChunk) {
      chunks.push_back(piece.chunks->chunk_nbytes(piece.chunk));
    }
  }
  EXPECT_EQ(chunks, (std::vector<std::uint64_t>{3, kLong, 2}));
}

TEST(LayOut, RefusesToStackWhatDiffers) {
  const Refusal ragged = refusal_of([] {
    lay(bytes_field("x", {"a", "bc"}), layout(Layout::kStack));
  });
  EXPECT_EQ(ragged.kind, ErrorKind::kUsage);
  EXPECT_NE(ragged.text.find("record 1 is |u1 (2,), the first is |u1 (1,)"), std::string::npos)
      << ragged.text;
  FakeField absent = bytes_field("x", {"a", "b"});
  absent.items[1].present = false;
  const Refusal lacking = refusal_of([&] { lay(absent, layout(Layout::kStack)); });
  EXPECT_EQ(lacking.kind, ErrorKind::kUsage);
  EXPECT_NE(lacking.text.find("record 1 lacks it"), std::string::npos) << lacking.text;
}

TEST(LayOut, TakesTheDeclaredType) {
  const FakeField field = bytes_field("x", {"abcdefgh", "ijklmnop"});
  expect_array(lay(field, declared("<i2"))["x"], "<i2", {2, 4}, "abcdefghijklmnop");
  expect_array(lay(field, declared(">f4", Shape{2, 1}))["x"], ">f4", {2, 2, 1}, "abcdefghijklmnop");
  expect_array(lay(field, declared("f8", Shape{}))["x"], "<f8", {2}, "abcdefghijklmnop");
  expect_array(lay(field, declared("", Shape{2, 4}))["x"], "|u1", {2, 2, 4}, "abcdefghijklmnop");
  const Laid ragged = lay(bytes_field("x", {"abcd", "ef"}), declared("<i2"));
  expect_array(ragged["x"], "<i2", {3}, "abcdef");
  expect_array(ragged["x_offsets"], "<i8", {3}, offsets({0, 2, 3}));
}

TEST(LayOut, RefusesBytesThatAreNotAsDeclared) {
  const FakeField field = bytes_field("x", {"abcd", "abc"});
  const Refusal multiple = refusal_of([&] { lay(field, declared("<i2")); });
  EXPECT_EQ(multiple.kind, ErrorKind::kCorrupt);
  EXPECT_NE(multiple.text.find("fake: record 1 is 3 bytes, expected a multiple of 2"),
            std::string::npos)
      << multiple.text;
  const Refusal whole = refusal_of([&] { lay(field, declared("<i2", Shape{2})); });
  EXPECT_EQ(whole.kind, ErrorKind::kCorrupt);
  EXPECT_NE(whole.text.find("record 1 is 3 bytes, expected 4"), std::string::npos) << whole.text;
  constexpr std::uint64_t kHuge = std::uint64_t{1} << 61;
  EXPECT_EQ(refusal_of([&] { lay(field, declared("<i8", Shape{kHuge})); }).kind, ErrorKind::kUsage);
}

TEST(LayOut, LetsATypedFieldBeReshapedButNotRetyped) {
  const FakeField field = typed_field("x", "<i2", {{{2}, "abcd"}, {{2}, "efgh"}});
  expect_array(lay(field, declared("", Shape{2, 1}))["x"], "<i2", {2, 2, 1}, "abcdefgh");
  expect_array(lay(field, declared("<i2"))["x"], "<i2", {2, 2}, "abcdefgh");
  EXPECT_EQ(refusal_of([&] { lay(field, declared("<u2")); }).kind, ErrorKind::kUsage);
  const Refusal other = refusal_of([&] { lay(field, declared("", Shape{3})); });
  EXPECT_EQ(other.kind, ErrorKind::kCorrupt);
  EXPECT_NE(other.text.find("record 0 is (2,)"), std::string::npos) << other.text;
}

TEST(LayOut, LeavesRowsOfAbsentItemsEmpty) {
  FakeField field = bytes_field("x", {"ab", "cd", "ef", "gh"});
  field.items[0].present = field.items[2].present = false;
  const Laid laid = lay(field);
  expect_array(laid["x"], "|u1", {4}, "cdgh");
  expect_array(laid["x_offsets"], "<i8", {5}, offsets({0, 0, 2, 2, 4}));
  ASSERT_EQ(laid.warnings.size(), 1U);
  EXPECT_NE(laid.warnings[0].find("record 0 lacks x (and 1 more)"), std::string::npos)
      << laid.warnings[0];
  expect_array(lay(field, layout(Layout::kPad, "46"))["x"], "|u1", {4, 2}, "..cd..gh");
  field.sparse = true;
  EXPECT_TRUE(lay(field).warnings.empty()) << "missing by nature";
}

TEST(LayOut, ServesAFieldThatAllLack) {
  FakeField field = bytes_field("x", {"ab", "cd"});
  field.items[0].present = field.items[1].present = false;
  const Laid laid = lay(field);
  expect_array(laid["x"], "|u1", {0}, "");
  expect_array(laid["x_offsets"], "<i8", {3}, offsets({0, 0, 0}));
  expect_array(lay(field, declared("<f4", Shape{2, 3}))["x"], "<f4", {0, 3}, "");
}

TEST(LayOut, ServesATableWithoutRecords) {
  const FakeField field = bytes_field("x", {});
  expect_array(lay(field)["x"], "|u1", {0}, "");
  expect_array(lay(field, declared("<f4"))["x"], "<f4", {0}, "");
  expect_array(lay(field, declared("<f4", Shape{2, 3}))["x"], "<f4", {0, 2, 3}, "");
  const Laid concat = lay(field, layout(Layout::kConcat));
  expect_array(concat["x"], "|u1", {0}, "");
  expect_array(concat["x_offsets"], "<i8", {1}, offsets({0}));
  const Laid pad = lay(field, layout(Layout::kPad));
  EXPECT_EQ(pad["x"].nbytes(), 0U);
  expect_array(pad["x_lengths"], "<i8", {0}, "");
  EXPECT_EQ(lay(typed_field("x", "<i4", {}))["x"].nbytes(), 0U);
}

TEST(LayOut, ServesRecordsWithoutBytes) {
  expect_array(lay(bytes_field("x", {"", ""}))["x"], "|u1", {2, 0}, "");
  expect_array(lay(typed_field("x", "<i4", {{{0, 3}, ""}, {{0, 3}, ""}}))["x"], "<i4", {2, 0, 3},
               "");
  const Laid pad = lay(bytes_field("x", {"", ""}), layout(Layout::kPad));
  expect_array(pad["x"], "|u1", {2, 0}, "");
  expect_array(pad["x_lengths"], "<i8", {2}, offsets({0, 0}));
}

FakeRecords with_damage(const FakeField& field, std::uint64_t record,
                        std::optional<std::uint64_t> nbytes = {}) {
  FakeRecords records;
  records.fields = {field};
  records.damage.emplace(record, fake_damage("this one is bad", nbytes));
  return records;
}

TEST(LayOut, DamageKeepsThePlaceOfItsRecord) {
  for (std::uint64_t bad = 0; bad < 3; ++bad) {
    const Laid laid = lay(with_damage(bytes_field("x", {"ab", "cd", "ef"}), bad));
    EXPECT_EQ(laid["x"].shape(), (Shape{3, 2}));
    std::string expected = "abcdef";
    expected.replace(bad * 2, 2, "??");
    EXPECT_EQ(read_what_can_be(laid["x"]), expected);
    EXPECT_EQ(laid.field.damaged, std::vector<std::uint64_t>{bad});
    EXPECT_EQ(laid.warnings, Strings{"this one is bad"});
  }
}

TEST(LayOut, DamageTakesTheRowsThatItsSizeTells) {
  const FakeField field =
      typed_field("x", "<i2", {{{1, 2}, "abcd"}, {{2, 2}, "efghijkl"}, {{1, 2}, "mnop"}});
  const Laid known = lay(with_damage(field, 1, 12));
  EXPECT_EQ(known["x"].shape(), (Shape{3, 1, 2})) << "all others are alike";
  EXPECT_EQ(read_what_can_be(known["x"]), "abcd????mnop");
  const FakeField ragged = typed_field(
      "x", "<i2", {{{1, 2}, "abcd"}, {{2, 2}, "efghijkl"}, {{1, 2}, "mnop"}, {{2, 2}, "qrstuvwx"}});
  const Laid sized = lay(with_damage(ragged, 2, 12));
  EXPECT_EQ(sized["x"].shape(), (Shape{8, 2}));
  EXPECT_EQ(read_what_can_be(sized["x"]), "abcdefghijkl????????????qrstuvwx");
  for (const std::optional<std::uint64_t> nbytes :
       {std::optional<std::uint64_t>(), std::optional<std::uint64_t>(13)}) {
    const Laid unknown = lay(with_damage(ragged, 2, nbytes));
    EXPECT_EQ(unknown["x"].shape(), (Shape{5, 2}));
    EXPECT_EQ(read_array(unknown["x"]), "abcdefghijklqrstuvwx");
  }
  const Laid padded = lay(with_damage(ragged, 2, 12), layout(Layout::kPad));
  EXPECT_EQ(padded["x"].shape(), (Shape{4, 3, 2}));
  EXPECT_EQ(read_what_can_be(padded["x"]).substr(24, 12), "????????????");
}

TEST(LayOut, DamageBeforeTheFirstGoodRecord) {
  const FakeField field = bytes_field("x", {"ab", "cd", "e"});
  const Laid laid = lay(with_damage(field, 0, 3));
  EXPECT_EQ(read_what_can_be(laid["x"]), "???cde");
  EXPECT_EQ(read_array(laid["x_offsets"]), offsets({0, 3, 5, 6}));
}

// Whatever the layout, what is said of the rows fits the array.
TEST(LayOut, ServesATableWhereAllIsDamaged) {
  FakeRecords records;
  records.fields = {bytes_field("x", {"abcdef", "ghijkl"})};
  records.damage.emplace(0, fake_damage("first"));
  records.damage.emplace(1, fake_damage("second"));
  const Laid plain = lay(records);
  EXPECT_EQ(plain.field.damaged, (std::vector<std::uint64_t>{0, 1}));
  EXPECT_EQ(plain.warnings, (Strings{"first", "second"}));

  const Laid stacked = lay(records, declared("|u1", Shape{2, 3}));
  EXPECT_EQ(stacked["x"].shape(), (Shape{2, 2, 3}));
  EXPECT_EQ(read_what_can_be(stacked["x"]), "????????????");

  FieldChoices choices = declared("|u1", Shape{2, 3});
  choices.layout["x"] = Layout::kConcat;
  const Laid concat = lay(records, choices);
  EXPECT_EQ(concat["x"].shape(), (Shape{4, 3}));
  EXPECT_EQ(read_array(concat["x_offsets"]), offsets({0, 2, 4}));

  choices.layout["x"] = Layout::kPad;
  const Laid padded = lay(records, choices);
  EXPECT_EQ(padded["x"].shape(), (Shape{2, 2, 3}));
  EXPECT_EQ(read_array(padded["x_lengths"]), offsets({2, 2}));
  EXPECT_EQ(read_what_can_be(padded["x"]), "????????????");
}

// A record that contradicts what was declared, and its checksum too, is damaged; one whose checksum
// holds contradicts.
TEST(LayOut, AsksTheChecksumOfWhatContradictsTheDeclaration) {
  FakeRecords records;
  records.fields = {bytes_field("x", {"abcd", "abc", "efgh"})};
  records.checksums = true;
  EXPECT_EQ(refusal_of([&] { lay(records, declared("<i2", Shape{2})); }).kind, ErrorKind::kCorrupt);
  records.failing = {1};
  const Laid laid = lay(records, declared("<i2", Shape{2}));
  EXPECT_EQ(laid["x"].shape(), (Shape{3, 2}));
  EXPECT_EQ(read_what_can_be(laid["x"]), "abcd????efgh");
  EXPECT_EQ(laid.field.damaged, std::vector<std::uint64_t>{1});
}

TEST(LayOut, RefusesATypedFieldOfMixedTypes) {
  FakeField field = typed_field("x", "<i2", {{{1}, "ab"}, {{1}, "cd"}});
  field.items.push_back({"efgh", DType::simple("<i4"), {1}});
  const Refusal types = refusal_of([&] { lay(field); });
  EXPECT_EQ(types.kind, ErrorKind::kUnsupported);
  EXPECT_NE(types.text.find("x cannot be one array: record 2 is <i4 (1,), the first is <i2 (1,)"),
            std::string::npos)
      << types.text;
  const FakeField shapes = typed_field("x", "<i2", {{{1, 2}, "abcd"}, {{1, 1}, "ef"}});
  EXPECT_EQ(refusal_of([&] { lay(shapes); }).kind, ErrorKind::kUnsupported);
}

std::string npy(const std::string& dtype, const Shape& shape, const std::string& data,
                bool fortran_order = false) {
  return print_npy_header(DType::simple(dtype), shape, fortran_order) + data;
}

TEST(LayOut, UnderstandsNpyPayloads) {
  const FakeField field =
      bytes_field("x", {npy("<i2", {1, 2}, "abcd"), npy("<i2", {2, 2}, "efghijkl")});
  const Laid laid = lay(field);
  expect_array(laid["x"], "<i2", {3, 2}, "abcdefghijkl");
  EXPECT_EQ(laid["x"].storage(), "mapped");
  expect_slices(laid["x"]);
}

TEST(LayOut, BringsNpyPayloadsIntoCOrder) {
  // [[a c] [b d]] lies as abcd in Fortran order.
  const FakeField field =
      bytes_field("x", {npy("|u1", {2, 2}, "abcd", true), npy("|u1", {2, 2}, "efgh")});
  const Laid laid = lay(field);
  expect_array(laid["x"], "|u1", {2, 2, 2}, "acbdefgh");
  EXPECT_EQ(laid["x"].storage(), "decoded");
  expect_slices(laid["x"]);
}

TEST(LayOut, FallsBackToBytesForMixedTypes) {
  const std::string a = npy("<i2", {2}, "abcd");
  const std::string b = npy("<f4", {1}, "efgh");
  const Laid laid = lay(bytes_field("x", {a, a, b}));
  expect_array(laid["x"], "|u1", {3, a.size()}, a + a + b);
  ASSERT_EQ(laid.warnings.size(), 1U);
  EXPECT_NE(laid.warnings[0].find("x is shown as stored bytes"), std::string::npos)
      << laid.warnings[0];
  EXPECT_NE(laid.warnings[0].find("record 2 is <f4 (1,), the first is <i2"), std::string::npos)
      << laid.warnings[0];

  const Laid none = lay(bytes_field("x", {a, "not npy"}));
  expect_array(none["x"], "|u1", {a.size() + 7}, a + "not npy");
  ASSERT_EQ(none.warnings.size(), 1U);
  EXPECT_NE(none.warnings[0].find("record 1 is no .npy file"), std::string::npos)
      << none.warnings[0];
}

TEST(LayOut, ShowsNpyPayloadsAsBytesWhereThatIsAskedFor) {
  const std::string a = npy("<i2", {2}, "abcd");
  FieldChoices raw;
  raw.decode["x"] = "raw";
  for (const FieldChoices& choices : {raw, layout(Layout::kBytes)}) {
    expect_array(lay(bytes_field("x", {a, a}), choices)["x"], "|u1", {2, a.size()}, a + a);
  }
}

TEST(LayOut, ShowsWhatOnlyBeginsAsAnImageAsBytes) {
  const std::string jpg = "\xff\xd8\xff\xe0 and so on";
  const Laid laid = lay(bytes_field("x", {jpg, jpg + "more"}));
  expect_array(laid["x"], "|u1", {2 * jpg.size() + 4}, jpg + jpg + "more");
  ASSERT_EQ(laid.warnings.size(), 1U);
  EXPECT_NE(laid.warnings[0].find("x is shown as stored bytes"), std::string::npos)
      << laid.warnings[0];
}

TEST(LayOut, TakesAScalarForARowOfOne) {
  const FakeField field =
      typed_field("x", "<i2", {{{}, "ab"}, {{3}, "cdefgh"}, {{0}, ""}, {{}, "ij"}, {{1}, "kl"}});
  const Laid laid = lay(field);
  expect_array(laid["x"], "<i2", {6}, "abcdefghijkl");
  expect_array(laid["x_offsets"], "<i8", {6}, offsets({0, 1, 4, 4, 5, 6}));
  expect_slices(laid["x"]);
  FakeField reversed = field;
  std::reverse(reversed.items.begin(), reversed.items.end());
  expect_array(lay(reversed)["x"], "<i2", {6}, "klijcdefghab");
  expect_array(lay(field, layout(Layout::kPad))["x"], "<i2", {5, 3},
               "ab\0\0\0\0cdefgh\0\0\0\0\0\0ij\0\0\0\0kl\0\0\0\0"s);
}

TEST(LayOut, StacksScalars) {
  const FakeField field = typed_field("x", "<i2", {{{}, "ab"}, {{}, "cd"}});
  expect_array(lay(field)["x"], "<i2", {2}, "abcd");
  const Laid concat = lay(field, layout(Layout::kConcat));
  expect_array(concat["x"], "<i2", {2}, "abcd");
  expect_array(concat["x_offsets"], "<i8", {3}, offsets({0, 1, 2}));
}

TEST(LayOut, PutsTimeSeriesOneAfterAnotherEvenIfEqual) {
  FakeField field = typed_field("x", "<i2", {{{2}, "abcd"}, {{2}, "efgh"}});
  field.time_series = true;
  for (const bool uniform : {false, true}) {
    field.uniform = uniform;
    const Laid laid = lay(field);
    expect_array(laid["x"], "<i2", {4}, "abcdefgh");
    expect_array(laid["x_offsets"], "<i8", {3}, offsets({0, 2, 4}));
  }
  expect_array(lay(field, layout(Layout::kStack))["x"], "<i2", {2, 2}, "abcdefgh");
}

TEST(LayOut, BelievesAColumnThatSaysAllAreAlike) {
  FakeField field = typed_field("x", "<i2", {{{2}, "abcd"}, {{2}, "efgh"}});
  field.uniform = true;
  expect_array(lay(field)["x"], "<i2", {2, 2}, "abcdefgh");
  expect_array(lay(field, layout(Layout::kPad))["x"], "<i2", {2, 2}, "abcdefgh");
  expect_array(lay(field, declared("", Shape{1, 2}))["x"], "<i2", {2, 1, 2}, "abcdefgh");
}

TEST(LayOut, DecodesItemsInGroups) {
  // 3000 items of 100 bytes: several groups, the last one short.
  std::vector<std::pair<Shape, std::string>> items;
  std::string all;
  for (int i = 0; i < 3000; ++i) {
    items.push_back({{100}, std::string(100, static_cast<char>(i))});
    all += items.back().second;
  }
  FakeField field = typed_field("x", "|u1", items);
  field.decoded = true;
  const Laid laid = lay(field);
  EXPECT_EQ(laid["x"].storage(), "decoded");
  expect_array(laid["x"], "|u1", {3000, 100}, all);
  std::mt19937 random(1);
  for (int i = 0; i < 200; ++i) {
    const std::uint64_t begin = random() % all.size();
    const std::uint64_t end = std::min<std::uint64_t>(all.size(), begin + random() % 500);
    ASSERT_EQ(read_array(laid["x"], {begin, end}), all.substr(begin, end - begin));
  }
}

TEST(LayOut, AnItemThatCannotBeDecodedHarmsNoOther) {
  FakeField field = typed_field("x", "|u1", {{{2}, "ab"}, {{3}, "cde"}, {{1}, "f"}, {{2}, "gh"}});
  field.decoded = true;
  field.items[1].undecodable = true;
  EXPECT_EQ(read_what_can_be(lay(field)["x"]), "ab???fgh");
  EXPECT_EQ(read_what_can_be(lay(field, layout(Layout::kPad, "46"))["x"]), "ab.???f..gh.");
}

// The column knows nothing of it, and would plan all records as one.
TEST(Items, NoRunReachesOverDamageThatWasFoundLater) {
  const auto table = make_table(typed_field("x", "|u1", {{{2}, "ab"}, {{2}, "cd"}, {{2}, "ef"}}));
  const auto& column = table->fields()[0].typed;
  ASSERT_EQ(column->run(0), 3U);
  auto damaged = std::make_shared<DamageList>();
  damaged->add(1, "", [] { return fake_damage("found later"); });
  damaged->shrink();
  ItemsOf of;
  of.column = column;
  of.table = table;
  of.dtype = DType::simple("|u1");
  of.shape = {2};
  of.damaged = damaged;
  const ArrayPtr array = make_record_array(stacked(std::make_shared<const Items>(of)));
  Plan plan;
  array->plan({0, 6}, plan);
  EXPECT_EQ(plan.nbytes(), 6U);
  EXPECT_EQ(refusal_of([&] { testing::read_plan(plan); }).text, "found later");
  EXPECT_EQ(read_what_can_be(*array), "ab??ef");
}

// Bytes of one element as numpy.full((), value, dtype).tobytes() has them (numpy 1.24).
TEST(PadValue, OfEveryKind) {
  const std::string nan4("\0\0\xc0\x7f", 4);
  const std::string inf2("\0\x7c", 2);
  struct Case {
    std::string dtype, value, bytes;
  };
  const Case cases[] = {
      {"?", "0", "\0"s},
      {"?", "1", "\1"s},
      {"|u1", "255", "\xff"s},
      {"|i1", "-128", "\x80"s},
      {"|i1", "127", "\x7f"s},
      {"<i2", "-2", "\xfe\xff"s},
      {">i2", "-2", "\xff\xfe"s},
      {"<u2", "65535", "\xff\xff"s},
      {">u2", "258", "\1\2"s},
      {"<i4", "1e3", "\xe8\3\0\0"s},
      {"<i4", "2.0", "\2\0\0\0"s},
      {"<i4", "0.5e1", "\5\0\0\0"s},
      {"<i4", "-2147483648", "\0\0\0\x80"s},
      {"<u4", "4294967295", "\xff\xff\xff\xff"s},
      {"<i8", "-9223372036854775808", "\0\0\0\0\0\0\0\x80"s},
      {"<i8", "9223372036854775807", "\xff\xff\xff\xff\xff\xff\xff\x7f"s},
      {"<i8", "9007199254740993", "\1\0\0\0\0\0\x20\0"s},
      {"<u8", "18446744073709551615", "\xff\xff\xff\xff\xff\xff\xff\xff"s},
      {"<u8", "10000000000000000000", "\0\0\xe8\x89\4\x23\xc7\x8a"s},
      {"<u8", "1e19", "\0\0\xe8\x89\4\x23\xc7\x8a"s},
      {"<f2", "1.5", "\0\x3e"s},
      {"<f2", "65504", "\xff\x7b"s},
      {"<f2", "inf", inf2},
      {"<f4", "-1", "\0\0\x80\xbf"s},
      {">f4", "-1", "\xbf\x80\0\0"s},
      {"<f4", "nan", nan4},
      {"<f4", "0.1", "\xcd\xcc\xcc\x3d"s},
      {"<f8", "-0.5", "\0\0\0\0\0\0\xe0\xbf"s},
      {"<f16", "0", std::string(16, '\0')},
      {"<f16", "-1", "\0\0\0\0\0\0\0\x80\xff\xbf\0\0\0\0\0\0"s},
      {"<c8", "0", std::string(8, '\0')},
      {"<c16", "0", std::string(16, '\0')},
      {"S3", "0", std::string(3, '\0')},
      {"<U2", "0", std::string(8, '\0')},
      {"V5", "0", std::string(5, '\0')},
      {"<M8[ns]", "0", std::string(8, '\0')},
      {"<m8[s]", "0", std::string(8, '\0')},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(one.dtype + " " + one.value);
    const std::string item(one.bytes.size(), 'x');
    const FakeField field = typed_field("x", one.dtype, {{{1}, item}, {{0}, ""}});
    try {
      EXPECT_EQ(read_array(lay(field, layout(Layout::kPad, one.value))["x"]), item + one.bytes);
    } catch (const Error& error) {
      ADD_FAILURE() << error.what();
    }
  }
}

TEST(PadValue, RefusesWhatTheTypeDoesNotHold) {
  const std::pair<std::string, std::string> cases[] = {
      {"?", "2"},
      {"?", "-1"},
      {"|u1", "256"},
      {"|u1", "-1"},
      {"|i1", "128"},
      {"|i1", "-129"},
      {"<u2", "65536"},
      {"<i4", "2147483648"},
      {"<i4", "0.5"},
      {"<i4", "nan"},
      {"<i4", "inf"},
      {"<i8", "9223372036854775808"},
      {"<i8", "-9223372036854775809"},
      {"<u8", "18446744073709551616"},
      {"<u8", "-1"},
      {"<f2", "65536"},
      {"<f4", "1e39"},
      {"<f4", "-1e39"},
      {"<f8", "1e400"},
      {"<f4", ""},
      {"<f4", "one"},
      {"<f4", "1x"},
      {"<i4", "1 "},
      {"<i4", "0x10"},
      {"<c8", "1"},
      {"S3", "1"},
      {"<U2", "a"},
      {"<M8[ns]", "1"},
  };
  for (const auto& [dtype, value] : cases) {
    SCOPED_TRACE(dtype + " '" + value + "'");
    const std::string item(DType::simple(dtype).itemsize, 'x');
    const FakeField field = typed_field("x", dtype, {{{1}, item}, {{0}, ""}});
    const Refusal refusal = refusal_of([&, v = value] { lay(field, layout(Layout::kPad, v)); });
    EXPECT_EQ(refusal.kind, ErrorKind::kUsage);
    EXPECT_NE(refusal.text.find("--pad-value " + value), std::string::npos) << refusal.text;
  }
}

// Any mixture of rows, absences and damage, against bytes put together one by one.
TEST(LayOut, IsLikeANaiveModelAtRandom) {
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    FakeRecords records;
    FakeField field = typed_field("x", "<i2", {});
    field.decoded = random() % 2 == 0;
    field.gap = random() % 3;
    const bool ragged = random() % 3 != 0;
    const bool pad = random() % 2 == 0;
    std::vector<std::uint64_t> rows;
    std::uint64_t most = 0;
    for (std::uint64_t i = 0; i < 12; ++i) {
      const std::uint64_t n = ragged ? random() % 4 : 2;
      std::string bytes(n * 6, static_cast<char>('a' + i));
      field.items.push_back({bytes, DType::simple("<i2"), {n, 3}});
      field.items.back().present = random() % 6 != 0;
      if (random() % 6 == 0) {
        records.damage.emplace(i, fake_damage("bad", n * 6));
      }
      rows.push_back(n);
    }
    // What is there decides what the others get.
    std::optional<std::uint64_t> common;
    bool alike = true;
    for (std::uint64_t i = 0; i < 12; ++i) {
      if (records.damage.count(i) > 0) {
        continue;
      }
      if (!field.items[i].present) {
        rows[i] = 0;
        alike = false;
      } else {
        alike = alike && (!common || *common == rows[i]);
        common = rows[i];
      }
    }
    if (!common) {
      continue;
    }
    for (std::uint64_t i = 0; i < 12; ++i) {
      if (alike && records.damage.count(i) > 0) {
        rows[i] = *common;
      }
      most = std::max(most, rows[i]);
    }
    std::string expected;
    for (std::uint64_t i = 0; i < 12; ++i) {
      const bool bad = records.damage.count(i) > 0;
      expected += std::string(rows[i] * 6, bad ? '?' : static_cast<char>('a' + i));
      if (pad) {
        expected += std::string((most - rows[i]) * 6, bad ? '?' : '*');
      }
    }
    records.fields = {field};
    const Laid laid = lay(records, layout(pad ? Layout::kPad : Layout::kConcat, "10794"));
    ASSERT_EQ(read_what_can_be(laid["x"]), expected);
    if (!field.decoded && records.damage.empty()) {
      expect_slices(laid["x"]);
    }
  }
}

}  // namespace
}  // namespace npyfs
