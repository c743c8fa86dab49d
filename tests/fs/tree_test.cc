// SPDX-License-Identifier: Apache-2.0
//
// Names and numbers of everything in a mount.

#include "fs/tree.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/support/fake_source.h"
#include "tests/support/fake_table.h"

namespace npyfs {
namespace {

using testing::bytes_field;
using testing::FakeRecords;
using testing::make_table;
using Strings = std::vector<std::string>;

Dataset small_dataset() {
  std::vector<OpenedSource> sources;
  for (const std::string split : {"train", "val"}) {
    FakeRecords records;
    records.name = split + ".data";
    records.fields = {bytes_field("x", {"ab", "c", "def"}), bytes_field("y", {"1", "2", "3"})};
    records.fields[0].extension = "a";
    records.fields[1].extension = "b";
    records.key_kind = KeyKind::kText;
    records.text_keys = {"one", "two/", "three"};
    records.mtime_ns = split == "val" ? 2000 : 1000;
    sources.push_back({split, "", split, "fake", {make_table(records)}});
  }
  DatasetOptions options;
  options.attributes = {{"note", Value{std::string("stripes")}}};
  return build_dataset(sources, options, [](const std::string&) {});
}

class TreeTest : public ::testing::Test {
 protected:
  // Of a path below the root; nothing where a part of it is not there.
  std::optional<Ino> walk(const Strings& names) const {
    std::optional<Ino> at = Tree::kRoot;
    for (const std::string& name : names) {
      at = at ? tree_.lookup(*at, name) : std::nullopt;
    }
    return at;
  }
  const Node& node(const Strings& names) const { return *tree_.find(walk(names).value())->node; }
  Strings listed(const Strings& names) const {
    Strings all;
    for (const Ino child : node(names).children) {
      all.push_back(tree_.find(child)->node->name);
    }
    return all;
  }

  const Dataset dataset_ = small_dataset();
  const Tree tree_{dataset_, 64};
};

TEST_F(TreeTest, ListsWhatTheDatasetHas) {
  EXPECT_EQ(listed({}), (Strings{"attrs.npy", "attrs.json", "train", "val"}));
  EXPECT_EQ(listed({"train"}), (Strings{"keys.npy", "x.npy", "x_offsets.npy", "y.npy", "records"}));
  EXPECT_EQ(node({"train"}).kind, Node::Kind::kDirectory);
  EXPECT_EQ(node({"train", "x.npy"}).kind, Node::Kind::kArray);
  EXPECT_EQ(node({"train", "x.npy"}).npy->array().array->shape(), Shape{6});
  EXPECT_EQ(node({"train", "records"}).kind, Node::Kind::kRecords);
  EXPECT_EQ(node({"attrs.json"}).bytes, "{\n  \"note\": \"stripes\"\n}\n");
  EXPECT_EQ(node({"attrs.npy"}).bytes.substr(0, 6), "\x93NUMPY");
}

TEST_F(TreeTest, FindsByNameOnlyWhatIsThere) {
  for (const Strings& names :
       {Strings{""}, Strings{"."}, Strings{"Train"}, Strings{"train/x.npy"}, Strings{"train", "x"},
        Strings{"train", "x.npy", "x.npy"}, Strings{"attrs.json", "note"},
        Strings{"train", "records", "0.a"}, Strings{"train", "records", "one.a", "one.a"}}) {
    EXPECT_EQ(walk(names), std::nullopt) << ::testing::PrintToString(names);
  }
  EXPECT_EQ(tree_.lookup(0, "train"), std::nullopt);
  EXPECT_EQ(tree_.lookup(999, "train"), std::nullopt);
}

TEST_F(TreeTest, StatusIsFoundButNotListed) {
  EXPECT_EQ(node({kStatusDirectory}).kind, Node::Kind::kDirectory);
  EXPECT_FALSE(node({kStatusDirectory}).listed);
  EXPECT_EQ(node({kStatusDirectory, kErrorsFile}).kind, Node::Kind::kStatus);
}

TEST_F(TreeTest, EveryNumberFindsItsNodeAndNoOtherDoes) {
  std::set<Ino> seen;
  for (const auto& node : tree_.nodes()) {
    EXPECT_TRUE(seen.insert(node->ino).second);
    const auto target = tree_.find(node->ino);
    ASSERT_TRUE(target);
    EXPECT_EQ(target->node, node.get());
    EXPECT_FALSE(target->is_record);
    if (node->ino != Tree::kRoot) {
      EXPECT_EQ(tree_.lookup(node->parent, node->name), node->ino);
    }
    for (const Ino child : node->children) {
      EXPECT_EQ(tree_.find(child)->node->parent, node->ino);
    }
  }
  EXPECT_EQ(tree_.find(Tree::kRoot)->node->name, "");
  const Ino beyond = tree_.nodes().size() + Tree::kRoot;
  for (const Ino ino : {Ino{0}, beyond, ~Ino{0}, Ino{1} << 62, Ino{1} << 63, Ino{1} << 40}) {
    EXPECT_FALSE(tree_.find(ino)) << ino;
  }
}

TEST_F(TreeTest, NumbersOfRecordsComeAndGo) {
  std::set<Ino> seen;
  for (const auto& node : tree_.nodes()) {
    seen.insert(node->ino);
  }
  for (const std::string split : {"train", "val"}) {
    const Node& records = node({split, "records"});
    ASSERT_EQ(records.records->count(), 6U);
    for (std::uint64_t file = 0; file < 6; ++file) {
      const Ino ino = tree_.record_ino(records, file);
      EXPECT_TRUE(seen.insert(ino).second) << "unlike every other";
      const auto target = tree_.find(ino);
      ASSERT_TRUE(target);
      EXPECT_TRUE(target->is_record);
      EXPECT_EQ(target->node, &records);
      EXPECT_EQ(target->record_file, file);
      EXPECT_EQ(tree_.lookup(records.ino, records.records->name(file)), ino);
    }
    EXPECT_FALSE(tree_.find(tree_.record_ino(records, 6)));
  }
  EXPECT_FALSE(tree_.find(tree_.record_ino(node({"train"}), 0))) << "it has no records";
}

TEST_F(TreeTest, NumbersAreTheSameAtEveryMount) {
  const Dataset again = small_dataset();
  const Tree other(again, 4096);
  ASSERT_EQ(other.nodes().size(), tree_.nodes().size());
  for (std::size_t i = 0; i < other.nodes().size(); ++i) {
    EXPECT_EQ(other.nodes()[i]->ino, tree_.nodes()[i]->ino);
    EXPECT_EQ(other.path(other.nodes()[i]->ino), tree_.path(tree_.nodes()[i]->ino));
  }
  const Ino record = walk({"val", "records", "two%2F.b"}).value();
  EXPECT_EQ(other.lookup(other.lookup(other.lookup(Tree::kRoot, "val").value(), "records").value(),
                         "two%2F.b"),
            record);
}

TEST_F(TreeTest, TellsPaths) {
  EXPECT_EQ(tree_.path(Tree::kRoot), "/");
  EXPECT_EQ(tree_.path(walk({"train"}).value()), "train");
  EXPECT_EQ(tree_.path(walk({"val", "x.npy"}).value()), "val/x.npy");
  EXPECT_EQ(tree_.path(walk({"val", "records", "two%2F.b"}).value()), "val/records/two%2F.b");
  EXPECT_EQ(tree_.path(12345), "?");
}

TEST_F(TreeTest, IsAsOldAsItsSources) {
  EXPECT_EQ(node({"train"}).mtime_ns, 1000);
  EXPECT_EQ(node({"train", "x.npy"}).mtime_ns, 1000);
  EXPECT_EQ(node({"val", "x_offsets.npy"}).mtime_ns, 2000);
  EXPECT_EQ(node({"val", "records"}).mtime_ns, 2000);
  EXPECT_EQ(node({}).mtime_ns, 2000);
  EXPECT_EQ(node({"attrs.json"}).mtime_ns, 2000);
}

TEST_F(TreeTest, AddsUp) {
  std::uint64_t nbytes = node({"attrs.npy"}).bytes.size() + node({"attrs.json"}).bytes.size();
  for (const std::string split : {"train", "val"}) {
    for (const std::string name : {"keys.npy", "x.npy", "x_offsets.npy", "y.npy"}) {
      nbytes += node({split, name}).npy->nbytes();
    }
  }
  EXPECT_EQ(tree_.total_nbytes(), nbytes);
}

TEST(Tree, HasNoRecordsDirectoryWhereNothingIsStored) {
  FakeRecords none;
  const Dataset dataset = build_dataset({{"train", "", "train", "fake", {make_table(none)}}}, {},
                                        [](const std::string&) {});
  const Tree tree(dataset, 64);
  const Ino train = tree.lookup(Tree::kRoot, "train").value();
  EXPECT_EQ(tree.lookup(train, "records"), std::nullopt);
}

Dataset nested_dataset() {
  auto store = std::make_shared<Store>();
  const auto add = [](Group& group, const std::string& name, std::int64_t mtime_ns) {
    const auto source = std::make_shared<testing::FakeSource>(name, "12345678", mtime_ns);
    StoredArray& array = group.arrays.emplace_back();
    array.name = name;
    array.sources = {source};
    array.parts.emplace_back(make_mapped_grid(DType::simple("<i4"), {2}, source, 0));
  };
  Group inner;
  inner.name = "in/ner";
  inner.attributes = {{"unit", Value{std::string("s")}}};
  add(inner, "deep", 5000);
  Group outer;
  outer.name = "outer";
  add(outer, "x", 3000);
  outer.arrays[0].attributes = {{"n", Value{std::int64_t{1}}}};
  outer.groups.push_back(inner);
  add(store->root, "top", 1000);
  add(store->root, "attrs", 1000);  // its file's name is taken
  store->root.groups.push_back(outer);
  OpenedSource source;
  source.text = "store";
  source.format = "fake";
  source.stores = {store};
  return build_dataset({source}, {}, [](const std::string&) {});
}

TEST(TreeOfGroups, NestsAndHasAttributesWhereThereAreAny) {
  const Dataset dataset = nested_dataset();
  const Tree tree(dataset, 64);
  std::vector<std::string> paths;
  for (const auto& node : tree.nodes()) {
    paths.push_back(tree.path(node->ino));
  }
  EXPECT_EQ(paths, (Strings{"/", "attrs.npy", "attrs.json", "top.npy", "outer", "outer/x.npy",
                            "outer/x.attrs.json", "outer/in%2Fner", "outer/in%2Fner/attrs.json",
                            "outer/in%2Fner/deep.npy", ".npyfs", ".npyfs/errors"}));
  EXPECT_EQ(tree.find(5)->node->mtime_ns, 5000) << "as old as the newest below it";
  EXPECT_EQ(tree.find(7)->node->bytes, "{\n  \"n\": 1\n}\n");
}

}  // namespace
}  // namespace npyfs
