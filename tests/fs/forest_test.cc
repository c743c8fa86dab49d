// SPDX-License-Identifier: Apache-2.0
//
// Views in the mount's tree: there by name, not listed, numbered apart.

#include "fs/forest.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <memory>
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
  std::atomic<std::size_t> news_ = 0;  // how often it said so
  Forest forest_{dataset_, 64, {}, [this] { ++news_; }};
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

TEST_F(ForestTest, KnowsThePlainEntryOfEachOfAView) {
  const Ino view = forest_.lookup(Tree::kRoot, "@pad").value();
  const Ino train = forest_.lookup(view, "train").value();
  const Ino plain_train = forest_.lookup(Tree::kRoot, "train").value();
  EXPECT_EQ(forest_.plain_entry(view)->ino(), Tree::kRoot);
  EXPECT_EQ(forest_.plain_entry(train)->ino(), plain_train);
  EXPECT_EQ(forest_.plain_entry(forest_.lookup(train, "x.npy").value())->ino(),
            forest_.lookup(plain_train, "x.npy"));
  for (const char* name : {"x_lengths.npy", "perm.npy"}) {
    EXPECT_FALSE(forest_.plain_entry(forest_.lookup(train, name).value())) << name;
  }
  const Ino records = forest_.lookup(train, "records").value();
  EXPECT_FALSE(forest_.plain_entry(forest_.lookup(records, "1.bin").value()));
  EXPECT_FALSE(forest_.plain_entry(plain_train));
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

// The kernel is told of each number that it asks for, and gives each back.
TEST_F(ForestTest, AViewGoesWithTheLastNumberThatIsKnown) {
  const Ino view = forest_.lookup(Tree::kRoot, "@shuffle=1").value();
  const Ino train = forest_.lookup(view, "train").value();
  const Ino x = forest_.lookup(train, "x.npy").value();
  const Ino record = forest_.lookup(forest_.lookup(Tree::kRoot, "@pad").value(), "train").value();
  forest_.remember(x);
  const std::weak_ptr<const File> file = entry(x).file()->weak_from_this();
  forest_.forget(view, 1);
  forest_.forget(train, 1);
  forest_.forget(x, 1);
  EXPECT_EQ(forest_.path(x), "@shuffle=1/train/x.npy");
  EXPECT_FALSE(file.expired());
  forest_.forget(x, 1);
  EXPECT_TRUE(file.expired());
  for (const Ino ino : {view, train, x}) {
    EXPECT_EQ(forest_.find(ino), std::nullopt);
    EXPECT_EQ(forest_.path(ino), "?");
    EXPECT_EQ(forest_.lookup(ino, "x.npy"), std::nullopt);
  }
  EXPECT_EQ(forest_.path(record), "@pad/train") << "another view stays";
  EXPECT_EQ(forest_.count_views(), 1U);
}

TEST_F(ForestTest, TheMountsOwnTreeIsNeverForgotten) {
  const Ino train = forest_.lookup(Tree::kRoot, "train").value();
  forest_.forget(train, 1);
  forest_.forget(Tree::kRoot, 1000);
  forest_.note_open(train);
  forest_.note_close(train);
  EXPECT_EQ(forest_.path(train), "train");
}

TEST_F(ForestTest, NumbersOfAViewThatWentAreNotGivenToTheNextOnes) {
  std::set<Ino> seen;
  for (std::size_t i = 0; i < 1000; ++i) {
    const Ino view = forest_.lookup(Tree::kRoot, "@pad").value();
    EXPECT_TRUE(seen.insert(view).second);
    forest_.forget(view, 1);
  }
  EXPECT_EQ(forest_.count_views(), 0U);
}

TEST_F(ForestTest, NamesTheViewsThatHaveBeenIdleForLongest) {
  const auto name = [](std::size_t i) { return "@shuffle=" + std::to_string(i); };
  std::vector<Ino> views;
  for (std::size_t i = 0; i < Forest::kMostIdle + 4; ++i) {
    EXPECT_EQ(news_, std::max(i, Forest::kMostIdle) - Forest::kMostIdle);
    views.push_back(forest_.lookup(Tree::kRoot, name(i)).value());
  }
  // The first is open, twice; the second was asked for once more.
  forest_.note_open(views[0]);
  forest_.note_open(views[0]);
  forest_.note_close(views[0]);
  forest_.lookup(Tree::kRoot, name(1));
  EXPECT_EQ(forest_.pop_idle(), name(2));
  EXPECT_EQ(forest_.pop_idle(), name(3));
  EXPECT_EQ(forest_.pop_idle(), name(4));
  EXPECT_EQ(forest_.pop_idle(), std::nullopt);
  EXPECT_EQ(forest_.count_views(), views.size()) << "they go when the kernel forgets them";
  forest_.forget(views[2], 1);
  EXPECT_EQ(forest_.find(views[2]), std::nullopt);

  news_ = 0;
  forest_.note_close(views[0]);
  EXPECT_EQ(news_, 1U);
  EXPECT_EQ(forest_.pop_idle(), name(5));
  // One that was named, and is used again all the same, counts again.
  forest_.note_open(views[3]);
  forest_.note_close(views[3]);
  EXPECT_EQ(forest_.pop_idle(), name(6));
  EXPECT_EQ(forest_.pop_idle(), std::nullopt);
}

// Views are made and forgotten by some threads while others go through all that there is.
TEST_F(ForestTest, ServesThreadsWhileViewsComeAndGo) {
  constexpr std::size_t kRounds = 400;
  constexpr std::size_t kNames = 20;
  constexpr std::size_t kMakers = 3;
  constexpr std::size_t kReaders = 2;
  std::atomic<std::size_t> making{kMakers};
  std::vector<std::thread> threads;
  for (std::size_t maker = 0; maker < kMakers; ++maker) {
    threads.emplace_back([&, maker] {
      for (std::size_t i = 0; i < kRounds; ++i) {
        // Each goes through them in another order.
        const std::size_t seed = (maker % 2 == 0 ? i : kRounds - 1 - i) % kNames;
        const std::string name = "@shuffle=" + std::to_string(seed);
        const Ino view = forest_.lookup(Tree::kRoot, name).value();
        const Ino train = forest_.lookup(view, "train").value();
        const Ino x = forest_.lookup(train, "x.npy").value();
        forest_.note_open(x);
        EXPECT_EQ(forest_.path(x), name + "/train/x.npy");
        EXPECT_EQ(entry(x).file()->nbytes(), 128U + 6);
        forest_.pop_idle();
        forest_.note_close(x);
        for (const Ino known : {view, train, x}) {
          forest_.forget(known, 1);
        }
      }
      --making;
    });
  }
  for (std::size_t reader = 0; reader < kReaders; ++reader) {
    threads.emplace_back([&] {
      for (bool last = false; !last;) {
        last = making == 0;
        std::set<Ino> seen;
        forest_.for_each_fed([&](const FedFiles& files) {
          EXPECT_TRUE(seen.insert(files.first).second);
          EXPECT_EQ(files.sources.size(), 1U);
        });
        EXPECT_GE(seen.size(), 2U) << "those of the mount's own tree";
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(forest_.count_views(), 0U);
}

TEST_F(ForestTest, GivesWhatHasBecomeCompleteASecondNumber) {
  const Ino train = forest_.lookup(Tree::kRoot, "train").value();
  const Ino x = forest_.lookup(train, "x.npy").value();
  const Ino offsets = forest_.lookup(train, "x_offsets.npy").value();
  EXPECT_EQ(forest_.known_number(x), x);
  EXPECT_EQ(forest_.pop_completed(), std::nullopt);

  forest_.note_complete(x);
  EXPECT_EQ(news_, 1U);
  const Ino second = forest_.lookup(train, "x.npy").value();
  EXPECT_NE(second, x);
  EXPECT_EQ(forest_.lookup(train, "x.npy"), second) << "the same at every question";
  EXPECT_EQ(forest_.known_number(x), second);
  EXPECT_EQ(forest_.known_number(second), second);
  for (const Ino number : {x, second}) {
    EXPECT_EQ(entry(number).ino(), x) << "st_ino";
    EXPECT_EQ(entry(number).file(), entry(x).file());
    EXPECT_EQ(forest_.path(number), "train/x.npy");
    EXPECT_TRUE(forest_.forget(number, 1).empty());
  }
  EXPECT_EQ(forest_.lookup(train, "x_offsets.npy"), offsets) << "others keep theirs";
  EXPECT_EQ(forest_.find(offsets ^ x ^ second).value().ino(), offsets);

  EXPECT_EQ(forest_.pop_completed(), std::pair(train, std::string("x.npy")));
  EXPECT_EQ(forest_.pop_completed(), std::nullopt);
  forest_.note_complete(x);
  forest_.note_complete(second);
  EXPECT_EQ(forest_.pop_completed(), std::nullopt) << "it is said once";
  EXPECT_EQ(news_, 1U);
}

TEST_F(ForestTest, OnlyFilesOfItsOwnTreeBecomeComplete) {
  const Ino train = forest_.lookup(Tree::kRoot, "train").value();
  const Ino record = forest_.lookup(forest_.lookup(train, "records").value(), "1.bin").value();
  const Ino view = forest_.lookup(Tree::kRoot, "@part=0of2").value();
  const Ino in_view = forest_.lookup(forest_.lookup(view, "train").value(), "x.npy").value();
  for (const Ino ino : {Tree::kRoot, train, record, view, in_view, Ino{1} << 40}) {
    forest_.note_complete(ino);
    EXPECT_EQ(forest_.known_number(ino), ino);
  }
  EXPECT_EQ(forest_.pop_completed(), std::nullopt);
  EXPECT_EQ(news_, 0U);
}

TEST_F(ForestTest, ArraysBecomeCompleteWhileTheyAreLookedUp) {
  const Ino train = forest_.lookup(Tree::kRoot, "train").value();
  for (const char* name : {"x.npy", "x_offsets.npy"}) {
    const Ino first = forest_.lookup(train, name).value();
    std::atomic<bool> started = false;
    std::jthread reader([&] {
      Ino last = first;
      for (bool complete = false; !complete;) {
        complete = forest_.pop_completed().has_value();
        const Ino now = forest_.lookup(train, name).value();
        EXPECT_TRUE(now == last || last == first) << "a second number is for good";
        EXPECT_TRUE(!complete || now != first) << "what is told to the kernel is true already";
        last = now;
        started = true;
      }
    });
    while (!started) {
      std::this_thread::yield();
    }
    forest_.note_complete(first);
  }
}

TEST_F(ForestTest, HasAnEndUntilAViewGoes) {
  std::vector<Ino> views;
  for (std::size_t i = 0; i < Forest::kMostViews; ++i) {
    views.push_back(forest_.lookup(Tree::kRoot, "@shuffle=" + std::to_string(i)).value());
  }
  EXPECT_THROW(forest_.lookup(Tree::kRoot, "@pad"), Error);
  EXPECT_TRUE(forest_.lookup(Tree::kRoot, "@shuffle=0")) << "what is there stays";
  forest_.forget(views[1234], 1);
  EXPECT_EQ(forest_.lookup(Tree::kRoot, "@pad"), views[1234]) << "no other number is free";
}

}  // namespace
}  // namespace npyfs
