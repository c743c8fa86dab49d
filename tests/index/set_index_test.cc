// SPDX-License-Identifier: Apache-2.0
//
// Pages are found again while all that they depend on is the same, whatever happens to their file.

#include "index/set_index.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <utime.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "formats/bytes/byte_source.h"
#include "formats/bytes/error.h"

namespace npyfs {
namespace {

namespace fs = std::filesystem;

class SetIndexTest : public testing::Test {
 protected:
  SetIndexTest() : root_(fs::temp_directory_path() / ("npyfs-index-" + std::to_string(getpid()))) {
    fs::remove_all(root_);
    fs::create_directories(root_ / "data");
  }
  ~SetIndexTest() override { fs::remove_all(root_); }

  // A source whose last change is long ago.
  std::string make_file(const std::string& name, const std::string& text) {
    const std::string path = (root_ / "data" / name).string();
    std::ofstream(path, std::ios::binary) << text;
    const utimbuf old{1700000000, 1700000000};
    EXPECT_EQ(::utime(path.c_str(), &old), 0);
    return path;
  }

  static PageKey key_of(const std::string& path, const std::string& kind = "test 1") {
    PageKey key;
    key.add(kind);
    EXPECT_TRUE(key.add_source(*FileSource::open(path, path)));
    return key;
  }

  SetIndexOptions options() const {
    SetIndexOptions options;
    options.folder = (root_ / "index").string();
    options.set = "a set";
    options.version = "1";
    options.keeps_all = true;
    return options;
  }

  // What the page of each key says; for those that are not there it is "new KIND" and is kept.
  std::vector<std::string> visit(const std::vector<PageKey>& keys, const SetIndexOptions& options,
                                 const std::string& now) {
    const auto index = SetIndex::open(options);
    std::vector<std::string> found;
    for (const PageKey& key : keys) {
      const auto text = find_page(*index, key, [](PageReader& page) { return page.text(); });
      found.push_back(text.value_or("none"));
      if (!text) {
        index->keep(key, [&](PageWriter& page) { page.text(now); });
      }
    }
    index->finish();
    return found;
  }

  fs::path file(const std::string& extension) const {
    for (const auto& entry : fs::directory_iterator(root_ / "index")) {
      if (entry.path().extension() == extension) {
        return entry.path();
      }
    }
    return {};
  }

  fs::path root_;
};

using Texts = std::vector<std::string>;

TEST_F(SetIndexTest, FindsWhatWasKept) {
  const std::vector<PageKey> keys = {key_of(make_file("a", "1")), key_of(make_file("b", "22"))};
  EXPECT_EQ(visit(keys, options(), "first"), (Texts{"none", "none"}));
  EXPECT_EQ(visit(keys, options(), "second"), (Texts{"first", "first"}));
  EXPECT_EQ(fs::status(root_ / "index").permissions(), fs::perms::owner_all);
}

TEST_F(SetIndexTest, AChangedSourceHasAnotherPage) {
  const std::string a = make_file("a", "1");
  const std::string b = make_file("b", "2");
  visit({key_of(a), key_of(b)}, options(), "first");
  make_file("a", "longer");
  EXPECT_EQ(visit({key_of(a), key_of(b)}, options(), "second"), (Texts{"none", "first"}));
  EXPECT_EQ(visit({key_of(a), key_of(b)}, options(), "third"), (Texts{"second", "first"}));
}

TEST_F(SetIndexTest, AnotherKindIsAnotherPage) {
  const std::string a = make_file("a", "1");
  visit({key_of(a)}, options(), "first");
  EXPECT_EQ(visit({key_of(a, "test 2")}, options(), "second"), (Texts{"none"}));
  SetIndexOptions other = options();
  other.set = "another set";
  EXPECT_EQ(visit({key_of(a)}, other, "third"), (Texts{"none"}));
}

TEST_F(SetIndexTest, WhatWasJustWrittenIsNotKept) {
  const std::string path = (root_ / "data" / "new").string();
  std::ofstream(path) << "1";
  visit({key_of(path)}, options(), "first");
  EXPECT_EQ(visit({key_of(path)}, options(), "second"), (Texts{"none"}));
}

TEST_F(SetIndexTest, SmallSourcesAreNotWorthAFile) {
  SetIndexOptions some = options();
  some.keeps_all = false;
  const std::string a = make_file("a", "1");
  visit({key_of(a)}, some, "first");
  EXPECT_EQ(file(".index"), fs::path());
  const std::string large = make_file("large", std::string(std::size_t{4} << 20, 'x'));
  visit({key_of(a), key_of(large)}, some, "second");
  EXPECT_EQ(visit({key_of(a), key_of(large)}, some, "third"), (Texts{"second", "second"}));
}

// Bits of the file flip, and it is cut, without the stamp and with it: a copy that was put back.
TEST_F(SetIndexTest, DamageIsAMiss) {
  const std::vector<PageKey> keys = {key_of(make_file("a", "1")), key_of(make_file("b", "22"))};
  visit(keys, options(), "a text that is long enough to be hit");
  const fs::path path = file(".index");
  const auto nbytes = fs::file_size(path);
  std::mt19937_64 random(3);
  int missed = 0;
  for (std::uint64_t at = 0; at < nbytes; ++at) {
    std::string bytes(nbytes, '\0');
    std::ifstream(path, std::ios::binary).read(bytes.data(), static_cast<std::streamsize>(nbytes));
    bytes[at] = static_cast<char>(bytes[at] ^ (1 << random() % 8));
    bytes.resize(random() % 8 == 0 ? random() % nbytes : nbytes);
    const fs::path other = root_ / "other";
    std::ofstream(other, std::ios::binary) << bytes;
    fs::permissions(other, fs::perms::owner_read | fs::perms::owner_write);
    fs::rename(other, path);
    for (const std::string& text : visit(keys, options(), "a text that is long enough to be hit")) {
      missed += text == "none" ? 1 : 0;
      EXPECT_TRUE(text == "none" || text == "a text that is long enough to be hit") << text;
    }
  }
  EXPECT_GE(missed, static_cast<int>(nbytes) / 2);
}

TEST_F(SetIndexTest, AnUnusableFolderIsNoError) {
  const std::string a = make_file("a", "1");
  SetIndexOptions none = options();
  none.folder.clear();
  EXPECT_EQ(visit({key_of(a)}, none, "first"), (Texts{"none"}));
  none.folder = (root_ / "data" / "a" / "below a file").string();
  EXPECT_THROW(SetIndex::open(none), Error) << "npyfs index has nothing else to do";
  none.keeps_all = false;
  EXPECT_EQ(visit({key_of(a)}, none, "first"), (Texts{"none"}));
}

TEST_F(SetIndexTest, LeavesOtherFilesAlone) {
  fs::create_directory(root_ / "index");
  fs::permissions(root_ / "index", fs::perms::owner_all);
  const std::string hex(32, 'a');
  const utimbuf old{1000000000, 1000000000};
  for (const std::string& name :
       {std::string("weights.new"), std::string("mine.stamp"), std::string("mine.index"),
        hex + ".npy", hex + ".1.0.new", hex + ".stamp", hex + ".index", hex + ".1.0.news"}) {
    std::ofstream(root_ / "index" / name) << "x";
    ASSERT_EQ(::utime((root_ / "index" / name).c_str(), &old), 0);
  }
  visit({key_of(make_file("a", "1"))}, options(), "first");
  std::vector<std::string> left;
  for (const auto& entry : fs::directory_iterator(root_ / "index")) {
    if (fs::last_write_time(entry) < fs::file_time_type::clock::now() - std::chrono::hours(24)) {
      left.push_back(entry.path().filename().string());
    }
  }
  std::sort(left.begin(), left.end());
  EXPECT_EQ(left,
            (Texts{hex + ".1.0.news", hex + ".npy", "mine.index", "mine.stamp", "weights.new"}));
}

TEST_F(SetIndexTest, AnotherProgramsPagesAreNotBelieved) {
  const std::string a = make_file("a", "1");
  visit({key_of(a)}, options(), "first");
  SetIndexOptions other = options();
  other.version = "2";
  EXPECT_EQ(visit({key_of(a)}, other, "second"), (Texts{"none"}));
}

TEST_F(SetIndexTest, TakesWhatWasMadeAhead) {
  const std::string a = make_file("a", "1");
  SetIndexOptions ahead = options();
  ahead.folder.clear();
  ahead.target = (root_ / "data" / "made.index").string();
  visit({key_of(a)}, ahead, "ahead");
  // The same data elsewhere: other inodes, the same names, sizes and times.
  fs::copy(root_ / "data", root_ / "moved");
  const utimbuf old{1700000000, 1700000000};
  const std::string moved = (root_ / "moved" / "a").string();
  ASSERT_EQ(::utime(moved.c_str(), &old), 0);
  SetIndexOptions there = options();
  there.made_ahead = (root_ / "moved" / "made.index").string();
  EXPECT_EQ(visit({key_of(moved)}, there, "new"), (Texts{"ahead"}));
  // It is in the folder now.
  fs::remove(there.made_ahead);
  there.made_ahead.clear();
  EXPECT_EQ(visit({key_of(moved)}, there, "new"), (Texts{"ahead"}));
  // Of another time it is another file.
  const utimbuf later{1700000001, 1700000001};
  ASSERT_EQ(::utime(moved.c_str(), &later), 0);
  there.made_ahead = ahead.target;
  EXPECT_EQ(visit({key_of(moved)}, there, "new"), (Texts{"none"}));
}

TEST_F(SetIndexTest, RefusesWhatIsNoIndexMadeAhead) {
  SetIndexOptions ahead = options();
  ahead.made_ahead = make_file("a", "no index at all, but long enough to have a tail of one");
  EXPECT_THROW(SetIndex::open(ahead), Error);
  fs::permissions(ahead.made_ahead, fs::perms::others_write, fs::perm_options::add);
  EXPECT_THROW(SetIndex::open(ahead), Error) << "anybody may have written it";
  ahead.made_ahead = (root_ / "missing").string();
  EXPECT_THROW(SetIndex::open(ahead), Error);
}

TEST_F(SetIndexTest, ManyMayWriteAtOnce) {
  std::vector<PageKey> keys;
  for (int i = 0; i < 50; ++i) {
    keys.push_back(key_of(make_file(std::to_string(i), std::string(100, 'x'))));
  }
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      for (int round = 0; round < 10; ++round) {
        const std::vector<PageKey> some(keys.begin() + thread * 5, keys.begin() + thread * 5 + 30);
        for (const std::string& text : visit(some, options(), "page")) {
          EXPECT_TRUE(text == "none" || text == "page") << text;
        }
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  for (const auto& entry : fs::directory_iterator(root_ / "index")) {
    EXPECT_NE(entry.path().extension(), ".new");
  }
}

}  // namespace
}  // namespace npyfs
