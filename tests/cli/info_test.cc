// SPDX-License-Identifier: Apache-2.0

#include "cli/info.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "cli/load.h"
#include "cli/umount.h"
#include "tests/cli/scratch_folder.h"
#include "tests/support/fake_table.h"

namespace npyfs {
namespace {

class PlainArray : public Array {
 public:
  PlainArray() : Array(DType::simple("<f4"), {50, 100, 20}) {}
  void plan(ByteRange /*range*/, Plan& /*plan*/) const override {}
  std::string storage() const override { return "mapped"; }
};

Dataset one_array() {
  NamedArray named;
  named.name = "x";
  named.array = std::make_shared<PlainArray>();
  named.format = "ffrecord";
  named.records = 50;
  for (const char* name : {"a.ffr", "b.ffr"}) {
    named.sources.push_back(std::make_shared<MemorySource>(name, std::vector<std::byte>()));
  }
  Dataset dataset;
  dataset.splits.push_back({"train", {named}, nullptr});
  dataset.attributes.emplace_back("note", Value{std::string("hi")});
  return dataset;
}

TEST(Info, Text) {
  expect_says(info_text(one_array()),
              {"train/", "x.npy", "<f4", "(50, 100, 20)", "400000", "mapped", "ffrecord",
               "a.ffr and 1 more", "attrs  note", "1 split"});
}

TEST(Info, SaysWhereRecordsAreOnlyWhereTheyAre) {
  const auto text_of = [](const TablePtr& table) {
    Dataset dataset = one_array();
    dataset.splits[0].records = table;
    return info_text(dataset);
  };
  const auto field = testing::bytes_field("x", {"a", "b"});
  EXPECT_NE(text_of(testing::make_table(field)).find("2 records, each also in train/records/\n"),
            std::string::npos);
  struct Rows : testing::FakeTable {
    using FakeTable::FakeTable;
    const std::vector<StoredUnit>& stored() const override { return none; }
    std::vector<StoredUnit> none;
  };
  const std::string text = text_of(std::make_shared<Rows>(testing::FakeRecords{"rows", {field}}));
  EXPECT_NE(text.find("train/  2 records\n"), std::string::npos) << text;
}

TEST(Info, Json) {
  const Value all = parse_json(info_json(one_array()));
  const Dict& top = std::get<Dict>(all.v);
  ASSERT_EQ(top.size(), 2u);
  EXPECT_EQ(top[0].name, "splits");
  EXPECT_EQ(top[1].name, "attrs");
  const Dict& split = std::get<Dict>(std::get<List>(top[0].value.v).at(0).v);
  EXPECT_EQ(std::get<std::string>(split[0].value.v), "train");
  EXPECT_TRUE(std::holds_alternative<std::monostate>(split[1].value.v));
  const Dict& array = std::get<Dict>(std::get<List>(split[2].value.v).at(0).v);
  std::string keys;
  for (const auto& [key, value] : array) {
    keys += key + " ";
  }
  EXPECT_EQ(keys, "name dtype shape records nbytes storage access format sources ");
  EXPECT_EQ(std::get<std::string>(array[1].value.v), "<f4");
}

TEST(Cache, DefaultsToAPartOfMemory) {
  EXPECT_GT(default_cache_nbytes(), 0u);
  EXPECT_LE(default_cache_nbytes(), std::uint64_t{4} << 30);
}

TEST(Umount, RefusesWhatIsNoNpyfs) {
  const ScratchFolder folder;
  CommandLine line;
  line.mountpoints = {folder.path()};
  expect_says(error_of(ErrorKind::kNotFound, [&] { run_umount(line); }),
              {folder.path().native(), "nothing is mounted"});
  line.mountpoints = {"/proc"};
  expect_says(error_of(ErrorKind::kNotFound, [&] { run_umount(line); }), {"/proc", "not an npyfs"});
}

}  // namespace
}  // namespace npyfs
