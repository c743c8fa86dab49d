// SPDX-License-Identifier: Apache-2.0
//
// Views in the mount's tree: there by name, not listed, numbered apart.

#include "fs/forest.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "formats/bytes/error.h"
#include "tests/support/fake_table.h"

namespace npyfs {
namespace {

using testing::bytes_field;
using testing::make_table;

class ForestTest : public ::testing::Test {
 protected:
  static Dataset small_dataset() {
    return build_dataset(
        {{"train", "", "train", "fake", {make_table(bytes_field("x", {"ab", "c", "def"}))}}}, {},
        [](const std::string&) {});
  }
  Entry entry(Ino ino) const { return forest_.find(ino).value(); }
  // Every number from `ino` on down.
  void walk(Ino ino, std::vector<Ino>& numbers) const {
    numbers.push_back(ino);
    const Entry entry = this->entry(ino);
    EXPECT_EQ(entry.ino(), ino);
    if (entry.directory() != nullptr) {
      entry.directory()->list(0, [&](std::uint64_t /*place*/, const std::string& name, Ino child) {
        EXPECT_FALSE(name.starts_with('@')) << name;
        walk(child, numbers);
        return true;
      });
    }
  }

  const Dataset dataset_ = small_dataset();
  Forest forest_{dataset_, 64};
};

TEST_F(ForestTest, FindsViewsByName) {
  const Ino view = forest_.lookup(Tree::kRoot, "@part=1of2").value();
  EXPECT_EQ(forest_.lookup(Tree::kRoot, "@part=1of2"), view) << "the same at every question";
  const Ino train = forest_.lookup(view, "train").value();
  const Ino x = forest_.lookup(train, "x.npy").value();
  EXPECT_EQ(entry(x).file()->nbytes(), 128U + 4);
  EXPECT_EQ(forest_.path(x), "@part=1of2/train/x.npy");
  EXPECT_EQ(entry(view).parent(), Tree::kRoot);
  const Ino records = forest_.lookup(train, "records").value();
  const Ino record = forest_.lookup(records, "1.bin").value();
  EXPECT_EQ(forest_.path(record), "@part=1of2/train/records/1.bin");
  EXPECT_EQ(entry(record).file()->nbytes(), 3U);
}

TEST_F(ForestTest, NoOtherNameIsAView) {
  EXPECT_EQ(forest_.lookup(Tree::kRoot, "@nonsense"), std::nullopt);
  const Ino train = forest_.lookup(Tree::kRoot, "train").value();
  EXPECT_EQ(forest_.lookup(train, "@pad"), std::nullopt);
  const Ino view = forest_.lookup(Tree::kRoot, "@pad").value();
  EXPECT_EQ(forest_.lookup(view, "@pad"), std::nullopt);
  EXPECT_EQ(forest_.lookup(view, ".npyfs"), std::nullopt);
}

TEST_F(ForestTest, GivesEachEntryItsOwnNumberAndListsNoView) {
  std::vector<Ino> numbers;
  walk(Tree::kRoot, numbers);
  for (const char* name : {"@pad", "@shuffle=1", "@part=0of2"}) {
    walk(forest_.lookup(Tree::kRoot, name).value(), numbers);
  }
  std::vector<Ino> again;
  walk(Tree::kRoot, again);
  EXPECT_EQ(again, std::vector<Ino>(numbers.begin(), numbers.begin() + again.size()));
  EXPECT_EQ(std::set<Ino>(numbers.begin(), numbers.end()).size(), numbers.size());
  EXPECT_EQ(forest_.find(4 * Tree::kNumbers + Tree::kRoot), std::nullopt);
}

// Views are made by some threads while others go through all that there is.
TEST_F(ForestTest, ServesThreadsWhileViewsAreMade) {
  constexpr std::size_t kViews = 200;
  constexpr std::size_t kMakers = 3;
  constexpr std::size_t kReaders = 2;
  std::vector<std::vector<Ino>> made(kMakers, std::vector<Ino>(kViews));
  std::atomic<std::size_t> making{kMakers};
  std::vector<std::thread> threads;
  for (std::size_t maker = 0; maker < kMakers; ++maker) {
    threads.emplace_back([&, maker] {
      for (std::size_t i = 0; i < kViews; ++i) {
        // Each goes through them in another order.
        const std::size_t seed = (maker % 2 == 0 ? i : kViews - 1 - i);
        const std::string name = "@shuffle=" + std::to_string(seed);
        const Ino view = forest_.lookup(Tree::kRoot, name).value();
        const Ino x = forest_.lookup(forest_.lookup(view, "train").value(), "x.npy").value();
        EXPECT_EQ(forest_.path(x), name + "/train/x.npy");
        EXPECT_EQ(entry(x).ino(), x);
        made[maker][seed] = view;
      }
      --making;
    });
  }
  for (std::size_t reader = 0; reader < kReaders; ++reader) {
    threads.emplace_back([&] {
      std::size_t known = 0;
      for (bool last = false; !last;) {
        last = making == 0;
        std::size_t count = 0;
        forest_.for_each_fed([&](const FedFiles& files) {
          ++count;
          EXPECT_EQ(&entry(files.first).file()->sources(), &files.sources);
        });
        EXPECT_GE(count, known) << "what is there stays";
        known = count;
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  for (std::size_t maker = 1; maker < kMakers; ++maker) {
    EXPECT_EQ(made[maker], made[0]) << "one view of each name";
  }
  EXPECT_EQ(std::set<Ino>(made[0].begin(), made[0].end()).size(), kViews);
}

TEST_F(ForestTest, HasAnEnd) {
  for (std::size_t i = 0; i < Forest::kMostViews; ++i) {
    ASSERT_TRUE(forest_.lookup(Tree::kRoot, "@shuffle=" + std::to_string(i)));
  }
  EXPECT_THROW(forest_.lookup(Tree::kRoot, "@pad"), Error);
  EXPECT_TRUE(forest_.lookup(Tree::kRoot, "@shuffle=0")) << "what is there stays";
}

}  // namespace
}  // namespace npyfs
