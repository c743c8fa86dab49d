// SPDX-License-Identifier: Apache-2.0
//
// Names and numbers of everything in a mount.

#include "fs/tree.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/fake_source.h"
#include "tests/support/fake_table.h"
#include "tests/support/read_plan.h"

namespace npyfs {
namespace {

using testing::bytes_field;
using testing::FakeRecords;
using testing::make_table;
using testing::read_plan;
using std::string_literals::operator""s;
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

Strings listed_names(const Directory& directory) {
  Strings all;
  directory.list(0, [&](std::uint64_t /*place*/, const std::string& name, Ino /*ino*/) {
    all.push_back(name);
    return true;
  });
  return all;
}

std::string text_of(const Entry& entry) {
  Plan plan;
  entry.file()->plan_read({0, entry.file()->nbytes() + 10}, plan);
  return read_plan(plan);
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
  Entry entry(const Strings& names) const { return tree_.find(walk(names).value()).value(); }
  Strings listed(const Strings& names) const { return listed_names(*entry(names).directory()); }

  const Dataset dataset_ = small_dataset();
  const Tree tree_{dataset_, 64, {{kErrorsFile, [] { return std::string("none yet"); }}}};
};

TEST_F(TreeTest, ListsWhatTheDatasetHas) {
  EXPECT_EQ(listed({}), (Strings{"attrs.npy", "attrs.json", "train", "val"}));
  EXPECT_EQ(listed({"train"}), (Strings{"keys.npy", "x.npy", "x_offsets.npy", "y.npy", "records"}));
  EXPECT_EQ(listed({"train", "records"}).size(), 6U);
  EXPECT_EQ(entry({"train"}).file(), nullptr);
  EXPECT_EQ(entry({"train", "records"}).file(), nullptr);
  EXPECT_EQ(entry({"train", "x.npy"}).directory(), nullptr);
  EXPECT_EQ(entry({"train", "x.npy"}).file()->xattrs()[2], std::pair("user.npyfs.shape"s, "(6,)"s));
  EXPECT_EQ(text_of(entry({"attrs.json"})), "{\n  \"note\": \"stripes\"\n}\n");
  EXPECT_EQ(text_of(entry({"attrs.npy"})).substr(0, 6), "\x93NUMPY");
  EXPECT_EQ(entry({"attrs.json"}).file()->text_now(), std::nullopt);
}

TEST_F(TreeTest, CountsDirectories) {
  EXPECT_EQ(entry({}).directory()->count_directories(), 2U);
  EXPECT_EQ(entry({"train"}).directory()->count_directories(), 1U);
  EXPECT_EQ(entry({"train", "records"}).directory()->count_directories(), 0U);
}

TEST_F(TreeTest, ListsFromAnyPlaceOn) {
  for (const Strings& names : {Strings{"train"}, Strings{"val", "records"}}) {
    const auto entry = this->entry(names);
    const Strings all = listed(names);
    for (std::size_t n = 1; n <= all.size(); ++n) {
      // As the kernel asks: so many names at a time.
      Strings found;
      std::uint64_t next = 0;
      for (std::size_t before = 1; before > 0;) {
        std::size_t left = n;
        before = found.size();
        entry.directory()->list(next, [&](std::uint64_t place, const std::string& name, Ino ino) {
          EXPECT_EQ(entry.directory()->find(name), ino);
          if (left-- == 0) {
            return false;
          }
          found.push_back(name);
          next = place + 1;
          return true;
        });
        before = found.size() - before;
      }
      EXPECT_EQ(found, all) << n << " at a time";
    }
  }
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
  EXPECT_EQ(listed({kStatusDirectory}), Strings{kErrorsFile});
  const Entry errors = entry({kStatusDirectory, kErrorsFile});
  EXPECT_EQ(errors.file()->text_now(), "none yet");
  EXPECT_EQ(errors.file()->nbytes(), 0U);
}

// Path and number of everything that is listed at any depth, parents first.
std::vector<std::pair<std::string, Ino>> walk_all(const Tree& tree) {
  std::vector<std::pair<std::string, Ino>> all{{"", tree.root()}};
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto [path, ino] = all[i];
    const auto entry = tree.find(ino);
    if (entry->directory() != nullptr) {
      entry->directory()->list(0,
                               [&](std::uint64_t /*place*/, const std::string& name, Ino number) {
                                 all.emplace_back(path.empty() ? name : path + "/" + name, number);
                                 return true;
                               });
    }
  }
  return all;
}

TEST_F(TreeTest, EveryNumberFindsItsEntryAndNoOtherDoes) {
  std::set<Ino> seen;
  for (const auto& [path, ino] : walk_all(tree_)) {
    EXPECT_TRUE(seen.insert(ino).second) << path;
    const auto entry = tree_.find(ino);
    ASSERT_TRUE(entry) << path;
    EXPECT_EQ(entry->ino(), ino);
    EXPECT_EQ(tree_.path(ino), path.empty() ? "/" : path);
    if (ino != Tree::kRoot) {
      const std::string name = path.substr(path.rfind('/') + 1);
      EXPECT_EQ(tree_.lookup(entry->parent(), name), ino) << path;
    }
    EXPECT_NE(entry->file() == nullptr, entry->directory() == nullptr) << path;
  }
  EXPECT_EQ(seen.size(), 1U + 4 + 2 * 5 + 2 * 6);
  EXPECT_EQ(tree_.find(Tree::kRoot)->parent(), Tree::kRoot);
  const Ino status = walk({kStatusDirectory, kErrorsFile}).value();
  const Ino behind = walk({"val", "records", "three.b"}).value() + 1;
  for (const Ino ino : {Ino{0}, status + 1, behind, ~Ino{0}, Ino{1} << 62, Ino{1} << 63,
                        Ino{1} << 31, Ino{1} << 32, Tree::kNumbers, Tree::kNumbers + 1}) {
    EXPECT_FALSE(tree_.find(ino)) << ino;
    EXPECT_EQ(tree_.path(ino), "?") << ino;
  }
}

TEST_F(TreeTest, GivesTheBytesOfRecords) {
  const Entry record = entry({"val", "records", "three.a"});
  EXPECT_EQ(text_of(record), "def");
  EXPECT_EQ(record.file()->nbytes(), 3U);
  EXPECT_EQ(record.file()->sources()[0]->name(), "val.data");
  EXPECT_TRUE(record.file()->xattrs().empty());
}

TEST_F(TreeTest, NumbersAreTheSameAtEveryMount) {
  const Dataset again = small_dataset();
  EXPECT_EQ(walk_all(Tree(again, 4096)), walk_all(tree_));
}

TEST_F(TreeTest, AViewHasNumbersOfItsOwn) {
  const Tree view(dataset_, 64, {5 * Tree::kNumbers + Tree::kRoot, "@pad"});
  const auto all = walk_all(view);
  EXPECT_EQ(all.size(), walk_all(tree_).size());
  for (const auto& [path, ino] : all) {
    EXPECT_EQ(ino / Tree::kNumbers, 5U) << path;
    EXPECT_FALSE(tree_.find(ino)) << path;
    EXPECT_EQ(view.path(ino), path.empty() ? "@pad" : "@pad/" + path);
  }
  EXPECT_EQ(view.find(view.root())->parent(), Tree::kRoot);
  EXPECT_EQ(view.lookup(view.root(), kStatusDirectory), std::nullopt);
}

TEST_F(TreeTest, TellsWhichFilesASourceFeeds) {
  std::map<std::string, std::set<std::string>> fed;
  tree_.for_each_fed([&](const FedFiles& files) {
    for (Ino ino = files.first; ino < files.first + files.count; ++ino) {
      for (const SourcePtr& source : files.sources) {
        fed[source->name()].insert(tree_.path(ino));
      }
      EXPECT_EQ(&tree_.find(ino)->file()->sources(), &files.sources);
    }
  });
  EXPECT_EQ(fed.size(), 4U) << "one source for each field";
  for (const std::string split : {"train", "val"}) {
    const std::set<std::string>& paths = fed[split + ".data"];
    EXPECT_EQ(paths.size(), 4U + 6) << split;
    EXPECT_TRUE(paths.contains(split + "/x.npy"));
    EXPECT_TRUE(paths.contains(split + "/records/two%2F.b"));
  }
}

TEST_F(TreeTest, TellsPaths) {
  EXPECT_EQ(tree_.path(Tree::kRoot), "/");
  EXPECT_EQ(tree_.path(walk({"train"}).value()), "train");
  EXPECT_EQ(tree_.path(walk({"val", "x.npy"}).value()), "val/x.npy");
  EXPECT_EQ(tree_.path(walk({"val", "records", "two%2F.b"}).value()), "val/records/two%2F.b");
  EXPECT_EQ(tree_.path(12345), "?");
}

TEST_F(TreeTest, IsAsOldAsItsSources) {
  EXPECT_EQ(entry({"train"}).mtime_ns(), 1000);
  EXPECT_EQ(entry({"train", "x.npy"}).mtime_ns(), 1000);
  EXPECT_EQ(entry({"val", "x_offsets.npy"}).mtime_ns(), 2000);
  EXPECT_EQ(entry({"val", "records"}).mtime_ns(), 2000);
  EXPECT_EQ(entry({"train", "records", "one.a"}).mtime_ns(), 1000);
  EXPECT_EQ(entry({}).mtime_ns(), 2000);
  EXPECT_EQ(entry({"attrs.json"}).mtime_ns(), 2000);
}

TEST_F(TreeTest, AddsUp) {
  std::uint64_t nbytes = 0;
  std::uint64_t files = 0;
  for (const auto& [path, ino] : walk_all(tree_)) {
    const auto entry = tree_.find(ino);
    const bool counts = path.find("records/") == std::string::npos;
    nbytes += counts && entry->file() != nullptr ? entry->file()->nbytes() : 0;
    files += path.ends_with("records") ? 0 : 1;
  }
  EXPECT_EQ(tree_.total_nbytes(), nbytes);
  EXPECT_EQ(tree_.total_files(), files + 2) << "with those of .npyfs";
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
  std::map<std::string, Ino> paths;
  for (const auto& [path, ino] : walk_all(tree)) {
    paths.emplace(path, ino);
  }
  Strings names;
  for (const auto& [path, ino] : paths) {
    names.push_back(path);
  }
  EXPECT_EQ(names, (Strings{"", "attrs.json", "attrs.npy", "outer", "outer/in%2Fner",
                            "outer/in%2Fner/attrs.json", "outer/in%2Fner/deep.npy",
                            "outer/x.attrs.json", "outer/x.npy", "top.npy"}));
  EXPECT_EQ(tree.find(paths["outer"])->mtime_ns(), 5000) << "as old as the newest below it";
  EXPECT_EQ(text_of(*tree.find(paths["outer/x.attrs.json"])), "{\n  \"n\": 1\n}\n");
}

}  // namespace
}  // namespace npyfs
