// SPDX-License-Identifier: Apache-2.0
//
// Sources become a data set: names, joins, what is left out, what is refused.

#include "formats/arrays/dataset.h"

#include <gtest/gtest.h>

#include "tests/support/fake_table.h"
#include "tests/support/read_plan.h"

namespace npyfs {
namespace {

using testing::bytes_field;
using testing::fake_damage;
using testing::FakeRecords;
using testing::make_table;
using testing::packed;
using testing::read_array;
using testing::Refusal;
using testing::refusal_of;
using Strings = std::vector<std::string>;
using Tables = std::vector<std::shared_ptr<const RecordTable>>;

struct Built {
  Dataset dataset;
  Strings warnings;

  const Split& split(const std::string& name) const {
    for (const Split& split : dataset.splits) {
      if (split.name == name) {
        return split;
      }
    }
    throw std::out_of_range("there is no split " + name);
  }
  const Array& array(const std::string& name, const std::string& in = "train") const {
    for (const NamedArray& named : split(in).arrays) {
      if (named.name == name) {
        return *named.array;
      }
    }
    throw std::out_of_range("there is no array " + name);
  }
  Strings names(const std::string& in = "train") const {
    Strings all;
    for (const NamedArray& named : split(in).arrays) {
      all.push_back(named.name);
    }
    return all;
  }
};

Built build(const std::vector<OpenedSource>& sources, const DatasetOptions& options = {}) {
  Built built;
  built.dataset = build_dataset(sources, options,
                                [&](const std::string& text) { built.warnings.push_back(text); });
  return built;
}

OpenedSource source(Tables tables, const std::string& array = "",
                    const std::string& split = "train", const std::string& format = "fake") {
  OpenedSource source;
  source.split = split;
  source.array = array;
  source.text = array.empty() ? split + "=FILE" : split + "/" + array + "=FILE";
  source.format = format;
  source.tables = std::move(tables);
  return source;
}

FakeRecords records(const std::string& name, const Strings& payloads) {
  FakeRecords made;
  made.name = name;
  made.fields = {bytes_field("x", payloads)};
  return made;
}

FakeRecords keyed(const std::string& name, const Strings& payloads, const Strings& keys) {
  FakeRecords made = records(name, payloads);
  made.key_kind = KeyKind::kText;
  made.text_keys = keys;
  return made;
}

std::string utf32(const Strings& letters) {
  std::string all;
  for (const std::string& letter : letters) {
    all += letter + std::string(3, '\0');
  }
  return all;
}

DatasetOptions permissive() {
  DatasetOptions options;
  options.permissive = true;
  return options;
}

bool any_has(const Strings& warnings, const std::string& text) {
  for (const std::string& warning : warnings) {
    if (warning.find(text) != std::string::npos) {
      return true;
    }
  }
  return false;
}

TEST(BuildDataset, KeepsTheOrderOfSplitsAndSortsArrays) {
  FakeRecords two = records("f", {"a"});
  two.fields.push_back(bytes_field("b", {"b"}));
  two.fields.push_back(bytes_field("A", {"c"}));
  const Built built = build({source({make_table(two)}, "", "val"),
                             source({make_table(records("g", {"d", "ee"}))}, "", "train"),
                             source({make_table(two)}, "", "val")});
  ASSERT_EQ(built.dataset.splits.size(), 2U);
  EXPECT_EQ(built.dataset.splits[0].name, "val");
  EXPECT_EQ(built.dataset.splits[1].name, "train");
  EXPECT_EQ(built.names("val"), (Strings{"A", "b", "x"}));
  EXPECT_EQ(built.names("train"), (Strings{"x", "x_offsets"}));
  EXPECT_EQ(read_array(built.array("x", "val")), "aa") << "both sources of val";
  const NamedArray& x = built.split("val").arrays[2];
  EXPECT_EQ(x.records, 2U);
  EXPECT_EQ(x.format, "fake");
  EXPECT_EQ(x.sources.size(), 6U);
  EXPECT_EQ(built.split("val").records->size(), 2U);
}

TEST(BuildDataset, ShowsKeys) {
  const Built built = build({source({make_table(keyed("f", {"a", "b"}, {"k", "l"}))})});
  EXPECT_EQ(built.names(), (Strings{"keys", "x"}));
  EXPECT_EQ(built.array("keys").dtype().text(), "<U1");
  EXPECT_EQ(read_array(built.array("keys")), utf32({"k", "l"}));
  FakeRecords numbered = records("f", {"a", "b"});
  numbered.key_kind = KeyKind::kInteger;
  numbered.int_keys = {-7, 9};
  EXPECT_EQ(read_array(build({source({make_table(numbered)})}).array("keys")),
            packed(std::vector<std::int64_t>{-7, 9}));
}

TEST(BuildDataset, Renames) {
  DatasetOptions options;
  options.fields.rename = {{"x", "a/b"}, {"keys", "ids"}};
  const Built built = build({source({make_table(keyed("f", {"a", "bb"}, {"k", "l"}))})}, options);
  EXPECT_EQ(built.names(), (Strings{"a%2Fb", "a%2Fb_offsets", "ids"}));
}

TEST(BuildDataset, RefusesNamesThatCollide) {
  FakeRecords made = keyed("f", {"a", "bb"}, {"k", "l"});
  made.fields.push_back(bytes_field("x_offsets", {"c", "d"}));
  const Refusal derived = refusal_of([&] { build({source({make_table(made)})}); });
  EXPECT_EQ(derived.kind, ErrorKind::kUnsupported);
  EXPECT_NE(derived.text.find("x_offsets.npy would be both"), std::string::npos) << derived.text;

  DatasetOptions options;
  options.fields.rename = {{"x_offsets", "fine"}};
  EXPECT_EQ(build({source({make_table(made)})}, options).names(),
            (Strings{"fine", "keys", "x", "x_offsets"}));
  options.fields.rename = {{"x_offsets", "keys"}};
  EXPECT_EQ(refusal_of([&] { build({source({make_table(made)})}, options); }).kind,
            ErrorKind::kUnsupported);
  options.fields.rename = {{"x", "y"}, {"x_offsets", "y"}};
  EXPECT_EQ(refusal_of([&] { build({source({make_table(made)})}, options); }).kind,
            ErrorKind::kUnsupported);
  options.fields.rename = {{"x", "x_offsets"}, {"x_offsets", "x"}};
  EXPECT_EQ(build({source({make_table(made)})}, options).names(),
            (Strings{"keys", "x", "x_offsets", "x_offsets_offsets"}))
      << "names may be exchanged";
}

TEST(BuildDataset, RefusesNamesThatAreTooLong) {
  FakeRecords made = records("f", {"a"});
  made.fields[0].name = std::string(251, 'n');
  EXPECT_EQ(build({source({make_table(made)})}).names(), Strings{std::string(251, 'n')});
  made.fields[0].name += 'n';
  EXPECT_EQ(refusal_of([&] { build({source({make_table(made)})}); }).kind, ErrorKind::kUnsupported);
}

TEST(BuildDataset, RefusesChoicesThatNameNoField) {
  const auto refusal = [](const FieldChoices& fields) {
    DatasetOptions options;
    options.fields = fields;
    return refusal_of([&] { build({source({make_table(records("f", {"a"}))})}, options); });
  };
  FieldChoices fields;
  fields.layout["typo"] = Layout::kPad;
  EXPECT_EQ(refusal(fields).kind, ErrorKind::kUsage);
  EXPECT_NE(refusal(fields).text.find("--layout typo=...: there is no field typo; there are: x"),
            std::string::npos)
      << refusal(fields).text;
  fields = {};
  fields.dtype["typo"] = DType::simple("<f4");
  EXPECT_EQ(refusal(fields).kind, ErrorKind::kUsage);
  fields = {};
  fields.shape["typo"] = {};
  EXPECT_EQ(refusal(fields).kind, ErrorKind::kUsage);
  fields = {};
  fields.decode["typo"] = "raw";
  EXPECT_EQ(refusal(fields).kind, ErrorKind::kUsage);
  fields = {};
  fields.rename["typo"] = "y";
  EXPECT_EQ(refusal(fields).kind, ErrorKind::kUsage);
  fields = {};
  fields.layout["keys"] = Layout::kPad;
  EXPECT_EQ(refusal(fields).kind, ErrorKind::kUsage) << "keys have no layout";
  fields = {};
  fields.rename["keys"] = "ids";
  EXPECT_EQ(refusal(fields).kind, std::nullopt);
}

TEST(BuildDataset, AChoiceMayConcernOneSplitOnly) {
  FakeRecords other = records("g", {"a"});
  other.fields[0].name = "y";
  DatasetOptions options;
  options.fields.dtype["y"] = DType::simple("|i1");
  const Built built = build(
      {source({make_table(records("f", {"a"}))}), source({make_table(other)}, "", "val")}, options);
  EXPECT_EQ(built.array("y", "val").dtype().text(), "|i1");
}

TEST(BuildDataset, OfEmptySourcesAsksForNoFields) {
  DatasetOptions options;
  options.fields.layout["typo"] = Layout::kPad;
  EXPECT_EQ(build({source({make_table(FakeRecords())})}, options).names(), Strings{});
}

TEST(BuildDataset, JoinsByKey) {
  const Built built = build(
      {source({make_table(keyed("f", {"a", "b", "c"}, {"1", "2", "3"}))}),
       source({make_table(keyed("g", {"Z", "Y", "X", "W"}, {"3", "1", "9", "2"}))}, "label")});
  EXPECT_EQ(built.names(), (Strings{"keys", "label", "x"}));
  EXPECT_EQ(read_array(built.array("x")), "abc");
  EXPECT_EQ(read_array(built.array("label")), "YWZ");
  EXPECT_EQ(read_array(built.array("keys")), utf32({"1", "2", "3"}));
}

TEST(BuildDataset, RefusesOneArrayOfTwoFormats) {
  const auto table = make_table(records("f", {"a"}));
  const Refusal refusal = refusal_of([&] {
    build({source({table}), source({table}, "", "train", "other")});
  });
  EXPECT_EQ(refusal.kind, ErrorKind::kUsage);
  EXPECT_EQ(build({source({table}), source({table}, "y", "train", "other")}).names(),
            (Strings{"x", "y"}));
}

TEST(BuildDataset, MissingKeysAreRefusedOrLeftOut) {
  const std::vector<OpenedSource> sources{
      source({make_table(keyed("f", {"a", "b", "c", "d"}, {"1", "2", "3", "4"}))}),
      source({make_table(keyed("g", {"D", "C", "A"}, {"4", "3", "1"}))}, "g"),
      source({make_table(keyed("h", {"s", "t", "u"}, {"4", "2", "1"}))}, "h")};
  const Refusal refusal = refusal_of([&] { build(sources); });
  EXPECT_EQ(refusal.kind, ErrorKind::kCorrupt);
  EXPECT_NE(refusal.text.find("train/g=FILE: it lacks record 1 (key 2) of train=FILE"),
            std::string::npos)
      << refusal.text;
  const Built built = build(sources, permissive());
  EXPECT_EQ(read_array(built.array("x")), "ad");
  EXPECT_EQ(read_array(built.array("g")), "AD");
  EXPECT_EQ(read_array(built.array("h")), "us");
  EXPECT_EQ(read_array(built.array("keys")), utf32({"1", "4"}));
  EXPECT_EQ(built.warnings.size(), 2U);
  EXPECT_EQ(built.split("train").records->size(), 2U);
}

TEST(BuildDataset, KeepsDamageUnlessPermissive) {
  FakeRecords damaged = records("f", {"a", "b", "c"});
  damaged.damage.emplace(1, fake_damage("b is bad"));
  const Built kept = build({source({make_table(damaged)})});
  EXPECT_EQ(testing::read_what_can_be(kept.array("x")), "a?c");
  EXPECT_EQ(kept.warnings, Strings{"b is bad"});
  const Built left = build({source({make_table(damaged)})}, permissive());
  EXPECT_EQ(read_array(left.array("x")), "ac");
  EXPECT_EQ(left.warnings, Strings{"b is bad; left out"});
  EXPECT_EQ(left.split("train").records->size(), 2U);
}

TEST(BuildDataset, LeavesDamageOutOfMembersJoinedByKey) {
  FakeRecords f = keyed("f", {"a", "b", "c", "d"}, {"1", "2", "3", "4"});
  FakeRecords g = keyed("g", {"D", "C", "B", "A"}, {"4", "3", "2", "1"});
  f.damage.emplace(0, fake_damage("a is bad"));
  g.damage.emplace(1, fake_damage("C is bad"));
  const Built built = build({source({make_table(f)}), source({make_table(g)}, "g")}, permissive());
  EXPECT_EQ(read_array(built.array("x")), "bd");
  EXPECT_EQ(read_array(built.array("g")), "BD");
}

// Without keys rows belong together by their number: what is left out of one is left out of all.
TEST(BuildDataset, LeavesDamageOutOfMembersJoinedRowByRow) {
  FakeRecords f = records("f", {"a", "b", "c", "d", "e"});
  FakeRecords g = records("g", {"A", "B", "C", "D", "E"});
  f.damage.emplace(1, fake_damage("b is bad"));
  g.damage.emplace(3, fake_damage("D is bad"));
  const std::vector<OpenedSource> both{source({make_table(f)}), source({make_table(g)}, "g")};
  const Built built = build(both, permissive());
  EXPECT_EQ(read_array(built.array("x")), "ace");
  EXPECT_EQ(read_array(built.array("g")), "ACE");

  f.damage.clear();
  const Built one = build({source({make_table(f)}), source({make_table(g)}, "g")}, permissive());
  EXPECT_EQ(read_array(one.array("x")), "abce");
  EXPECT_EQ(read_array(one.array("g")), "ABCE");
}

TEST(BuildDataset, LeavesDamageOutOfKeyedAndUnkeyedMembers) {
  FakeRecords f = keyed("f", {"a", "b", "c", "d", "e"}, {"1", "2", "3", "4", "5"});
  FakeRecords rows = records("r", {"A", "B", "C", "D", "E"});
  FakeRecords keys = keyed("k", {"5", "4", "3", "2", "1"}, {"5", "4", "3", "2", "1"});
  f.damage.emplace(0, fake_damage("a is bad"));
  rows.damage.emplace(2, fake_damage("C is bad"));
  keys.damage.emplace(1, fake_damage("4 is bad"));
  const Built built = build(
      {source({make_table(f)}), source({make_table(rows)}, "r"), source({make_table(keys)}, "k")},
      permissive());
  EXPECT_EQ(read_array(built.array("x")), "be");
  EXPECT_EQ(read_array(built.array("r")), "BE");
  EXPECT_EQ(read_array(built.array("k")), "25");
}

TEST(BuildDataset, UnequalLengthsStayRefusedWhenPermissive) {
  FakeRecords f = records("f", {"a", "b"});
  FakeRecords g = records("g", {"A", "B", "C"});
  g.damage.emplace(2, fake_damage("C is bad"));
  EXPECT_EQ(refusal_of([&] {
              build({source({make_table(f)}), source({make_table(g)}, "g")}, permissive());
            }).kind,
            ErrorKind::kCorrupt);
}

// Found while laying out: such a record leaves all members.
TEST(BuildDataset, LeavesDamageFoundLaterOutOfAllMembers) {
  FakeRecords f = records("f", {"a", "b", "c", "d"});
  FakeRecords g = records("g", {"AA", "BBB", "CC", "DD"});
  g.checksums = true;
  g.failing = {1};
  DatasetOptions options = permissive();
  options.fields.dtype["g"] = DType::simple("<i2");
  const Built built = build({source({make_table(f)}), source({make_table(g)}, "g")}, options);
  EXPECT_EQ(read_array(built.array("x")), "acd");
  EXPECT_EQ(read_array(built.array("g")), "AACCDD");
  EXPECT_EQ(built.split("train").records->size(), 3U);
  EXPECT_TRUE(any_has(built.warnings, "record 1"));
}

DatasetOptions verify_at_mount(bool is_permissive) {
  DatasetOptions options;
  options.permissive = is_permissive;
  options.verify = Verify::kMount;
  static const testing::PlainVerifier verifier;
  options.fields.verifier = &verifier;
  return options;
}

TEST(BuildDataset, VerifiesAtMount) {
  FakeRecords made = records("f", {"a", "b", "c"});
  made.fields.push_back(bytes_field("y", {"d", "e", "f"}));  // a second part of each record
  made.checksums = true;
  made.failing = {1};
  const Built kept = build({source({make_table(made)})}, verify_at_mount(false));
  ASSERT_EQ(kept.warnings.size(), 1U);
  EXPECT_NE(kept.warnings[0].find("record 1 fails its checksum (1 of 3 records fail)"),
            std::string::npos)
      << kept.warnings[0];
  EXPECT_EQ(kept.split("train").records->size(), 3U);
  const Built left = build({source({make_table(made)})}, verify_at_mount(true));
  EXPECT_EQ(read_array(left.array("x")), "ac");
  EXPECT_EQ(read_array(left.array("y")), "df");
}

TEST(BuildDataset, LeavesFailingRecordsOutOfMembersJoinedRowByRow) {
  FakeRecords f = records("f", {"a", "b", "c", "d"});
  FakeRecords g = records("g", {"A", "B", "C", "D"});
  f.checksums = g.checksums = true;
  f.failing = {0};
  g.failing = {2};
  const Built built =
      build({source({make_table(f)}), source({make_table(g)}, "g")}, verify_at_mount(true));
  EXPECT_EQ(read_array(built.array("x")), "bd");
  EXPECT_EQ(read_array(built.array("g")), "BD");
}

TEST(BuildDataset, AJoinedMemberShowsItsMainFieldOnly) {
  FakeRecords made = records("g", {"A"});
  made.fields.insert(made.fields.begin(), bytes_field("first", {"F"}));
  EXPECT_EQ(read_array(build({source({make_table(made)}, "y")}).array("y")), "A");
  made.fields.pop_back();
  EXPECT_EQ(read_array(build({source({make_table(made)}, "y")}).array("y")), "F");
  EXPECT_EQ(refusal_of([] { build({source({make_table(FakeRecords())}, "y")}); }).kind,
            ErrorKind::kUnsupported);
}

TEST(BuildDataset, MakesAttributes) {
  DatasetOptions options;
  options.class_names = Strings{"cat", "dog"};
  options.attributes = {{"note", Value{std::string("first")}},
                        {"n", Value{std::int64_t{3}}},
                        {"note", Value{std::string("second")}}};
  const Dict attributes =
      build({source({make_table(records("f", {"a"}))})}, options).dataset.attributes;
  ASSERT_EQ(attributes.size(), 3U);
  EXPECT_EQ(attributes[0].name, "class_names");
  EXPECT_EQ(std::get<std::string>(std::get<List>(attributes[0].value.v).at(1).v), "dog");
  EXPECT_EQ(attributes[1].name, "note");
  EXPECT_EQ(std::get<std::string>(attributes[1].value.v), "second");
  EXPECT_EQ(attributes[2].name, "n");
}

}  // namespace
}  // namespace npyfs
