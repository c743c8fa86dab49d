// SPDX-License-Identifier: Apache-2.0
//
// The folder: who may use it, what goes when it is full, what is cleared away, what is shown.

#include "kept/kept_folder.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kept/eviction.h"
#include "kept/kept_rows.h"
#include "tests/kept/faulty_disk.h"
#include "tests/kept/kept_setting.h"

namespace npyfs {
namespace {

using testing::all_blocks;
using testing::CacheFolder;
using testing::content_of;
using testing::flip_bit;
using testing::key_of;
using testing::read_block;
using testing::reference;
using testing::write;

using Outcome = KeptArray::Outcome;

constexpr std::uint64_t kNbytes = 4 * kKeptBlockNbytes;
constexpr std::uint64_t kMapNbytes = std::uint64_t{64} << 10;  // more than maps take here

class KeptFolderTest : public ::testing::Test {
 protected:
  ~KeptFolderTest() override { testing::set_disk_faults({}); }

  // Complete, or its first blocks; last used so many seconds ago.
  void make(std::uint64_t number, std::uint64_t blocks, int seconds_ago) {
    const auto array = cache_.open()->open(key_of(number), kNbytes);
    for (std::uint64_t block = 0; block < blocks; ++block) {
      ASSERT_EQ(write(*array, number, {block}), Outcome::kKept);
    }
    use(number, seconds_ago);
  }
  void use(std::uint64_t number, int seconds_ago) {
    timespec now{};
    ::clock_gettime(CLOCK_REALTIME, &now);
    now.tv_sec -= seconds_ago;
    const timespec times[2] = {now, now};
    ASSERT_EQ(::utimensat(AT_FDCWD, cache_.map(number).c_str(), times, 0), 0);
  }
  // The blocks of an array that another process would be served.
  std::vector<std::uint64_t> served(std::uint64_t number) {
    std::vector<std::uint64_t> blocks;
    if (const auto array = cache_.open()->find(key_of(number), kNbytes)) {
      for (const std::uint64_t block : all_blocks(*array)) {
        const std::string answer = read_block(*array, number, block);
        EXPECT_NE(answer, "wrong bytes") << number << " " << block;
        if (answer == "hit") {
          blocks.push_back(block);
        }
      }
    }
    return blocks;
  }
  KeptOptions bounded(std::uint64_t blocks) const {
    KeptOptions options;
    options.most_nbytes = blocks * kKeptBlockNbytes + kMapNbytes;
    return options;
  }

  CacheFolder cache_;
};

using Blocks = std::vector<std::uint64_t>;

// All arrays, after they were checked.
std::vector<KeptRow> checked(KeptFolder& folder) {
  std::vector<KeptRow> rows = list_kept(folder);
  check_kept(folder, rows);
  return rows;
}

std::string refusal_of(const std::string& path) {
  try {
    KeptFolder::open(path);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST_F(KeptFolderTest, IsMadeForItsOwnerAlone) {
  const std::string path = cache_.file("new");
  ASSERT_TRUE(KeptFolder::open(path));
  struct stat status {};
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0700u);
}

TEST_F(KeptFolderTest, WhereOthersMayWriteItIsRefused) {
  ASSERT_EQ(::chmod(cache_.path().c_str(), 0770), 0);
  EXPECT_EQ(refusal_of(cache_.path()),
            cache_.path().string() +
                ": the cache folder has mode 0770, expected 0700, since others could write to it; "
                "chmod it or name another one");
  EXPECT_NE(refusal_of(cache_.file("a/b")).find("cannot make the cache folder"), std::string::npos);
  std::ofstream(cache_.file("file")) << "x";
  EXPECT_NE(refusal_of(cache_.file("file")).find("Not a directory"), std::string::npos);
}

TEST_F(KeptFolderTest, AnotherUsersIsRefused) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "only root can give a folder away";
  }
  ASSERT_EQ(::chown(cache_.path().c_str(), 12345, 0), 0);
  EXPECT_NE(refusal_of(cache_.path()).find("belongs to user 12345, expected 0"), std::string::npos);
}

TEST_F(KeptFolderTest, AnotherUsersFilesAreNotBelieved) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "only root can give a file away";
  }
  make(1, 4, 0);
  ASSERT_EQ(::chown(cache_.complete(1).c_str(), 12345, 0), 0);
  EXPECT_EQ(served(1), Blocks());
}

TEST_F(KeptFolderTest, ThatCannotBeWrittenToIsReadFrom) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "only root can become another user";
  }
  make(1, 4, 0);
  make(2, 2, 0);
  for (const auto& entry : std::filesystem::directory_iterator(cache_.path())) {
    ASSERT_EQ(::chown(entry.path().c_str(), 12345, 0), 0);
  }
  // As an owner who has changed the file's owner sees it: complete only once it was checked.
  ASSERT_EQ(::chown(cache_.path().c_str(), 12345, 0), 0);
  ASSERT_EQ(::chmod(cache_.path().c_str(), 0500), 0);
  ASSERT_EQ(::seteuid(12345), 0);
  {
    const auto folder = cache_.open();
    EXPECT_TRUE(folder->is_read_only());
    EXPECT_EQ(served(1), (Blocks{0, 1, 2, 3}));
    EXPECT_EQ(served(2), (Blocks{0, 1}));
    const auto array = folder->open(key_of(2), kNbytes);
    EXPECT_EQ(write(*array, 2, {2}), Outcome::kFailed);
    EXPECT_EQ(folder->open(key_of(3), kNbytes), nullptr);
    EXPECT_EQ(checked(*folder).size(), 2u);
  }
  ASSERT_EQ(::seteuid(0), 0);
  EXPECT_TRUE(cache_.told().empty());
}

TEST_F(KeptFolderTest, TheLeastRecentlyUsedArrayGoesFirst) {
  make(1, 4, 1000);
  make(2, 4, 3000);
  make(3, 4, 2000);
  const auto folder = cache_.open(bounded(12));
  const auto array = folder->open(key_of(4), kNbytes);
  ASSERT_EQ(write(*array, 4, {0}), Outcome::kKept);
  EXPECT_EQ(served(2), Blocks());
  EXPECT_FALSE(std::filesystem::exists(cache_.map(2)));
  EXPECT_EQ(served(1).size(), 4u);
  EXPECT_EQ(served(3).size(), 4u);
  EXPECT_GE(folder->counts().evicted_nbytes, kNbytes);
  EXPECT_TRUE(cache_.told().empty());
}

TEST_F(KeptFolderTest, OfAnArrayInPartTheLastBlocksGo) {
  make(1, 3, 3000);
  make(2, 4, 1000);
  const auto folder = cache_.open(bounded(8));
  const auto array = folder->open(key_of(3), kNbytes);
  ASSERT_EQ(write(*array, 3, {0, 1, 2}), Outcome::kKept);
  EXPECT_EQ(served(1), (Blocks{0}));
  EXPECT_EQ(served(2).size(), 4u);
  EXPECT_LE(disk_nbytes(find_kept_files(folder->disk())), folder->most_nbytes());
}

TEST_F(KeptFolderTest, WhoeverReadsABlockThatGoesIsNotGivenZeros) {
  make(1, 3, 3000);
  const auto array = cache_.open()->open(key_of(1), kNbytes);
  ASSERT_EQ(read_block(*array, 1, 2), "hit");
  EXPECT_GT(evict(cache_.open()->disk(), kKeptBlockNbytes, "", std::chrono::seconds(0)), 0u);
  EXPECT_EQ(read_block(*array, 1, 2), "miss");
  EXPECT_EQ(read_block(*array, 1, 1), "hit");
  EXPECT_FALSE(array->has(2));
  ASSERT_EQ(write(*array, 1, {2}), Outcome::kKept);
  EXPECT_EQ(read_block(*array, 1, 2), "hit");
}

TEST_F(KeptFolderTest, WhatIsInUseStays) {
  make(1, 4, 3000);
  make(2, 3, 3000);
  const auto complete = cache_.open()->open(key_of(1), kNbytes);
  const auto part = cache_.open()->open(key_of(2), kNbytes);
  ASSERT_EQ(read_block(*part, 2, 0), "hit");  // just now
  const auto folder = cache_.open(bounded(8));
  const auto array = folder->open(key_of(3), kNbytes);
  EXPECT_EQ(write(*array, 3, {0}), Outcome::kKept);
  EXPECT_EQ(write(*array, 3, {1}), Outcome::kNoRoom);
  EXPECT_EQ(write(*array, 3, {2}), Outcome::kNoRoom);
  EXPECT_EQ(served(1).size(), 4u);
  EXPECT_EQ(served(2).size(), 3u);
  ASSERT_EQ(cache_.told().size(), 1u);
  EXPECT_NE(cache_.told()[0].find("the cache is full"), std::string::npos);
}

TEST_F(KeptFolderTest, AnArrayThatIsLargerThanTheFolderIsKeptInPart) {
  const auto folder = cache_.open(bounded(2));
  const auto array = folder->open(key_of(1), kNbytes);
  for (const std::uint64_t block : all_blocks(*array)) {
    write(*array, 1, {block});
  }
  EXPECT_EQ(served(1), (Blocks{0, 1}));
}

TEST_F(KeptFolderTest, WhatADeadWriterLeftInAFileIsGivenBack) {
  make(1, 2, 3000);
  {
    std::fstream part(cache_.part(1), std::ios::binary | std::ios::in | std::ios::out);
    part.seekp(3 * kKeptBlockNbytes);
    part.write(std::string(kKeptBlockNbytes, 'x').data(), kKeptBlockNbytes);
  }
  const auto folder = cache_.open();
  EXPECT_GE(evict(folder->disk(), 1, "", std::chrono::seconds(0)), 2 * kKeptBlockNbytes);
  EXPECT_EQ(served(1), (Blocks{0}));
}

TEST_F(KeptFolderTest, AFileSystemThatCannotPunchLosesTheWholeArray) {
  make(1, 3, 3000);
  testing::set_disk_faults({.punches = 1, .error = EOPNOTSUPP});
  const auto folder = cache_.open();
  EXPECT_GT(evict(folder->disk(), 1, "", std::chrono::seconds(0)), 0u);
  EXPECT_EQ(served(1), Blocks());
  EXPECT_FALSE(std::filesystem::exists(cache_.part(1)));
}

TEST_F(KeptFolderTest, LeftoversAreCleared) {
  make(1, 1, 0);
  const std::string name = key_of(2).name();
  std::ofstream(cache_.file(unfinished_map_name(name, 1))) << "half";
  std::ofstream(cache_.file(part_name(name))) << "data without a map";
  std::ofstream(cache_.file("mine.txt")) << "not of npyfs";
  std::ofstream(cache_.file("mine.new")) << "not of npyfs";
  const std::string being_made = unfinished_map_name(name, 2);
  const DiskFile maker = DiskFolder(cache_.path()).open(being_made, O_RDWR | O_CREAT);
  ASSERT_TRUE(maker.try_lock(DiskFile::Lock::kWriter));
  const auto folder = cache_.open();
  const std::vector<std::string> names = folder->disk().names();
  std::vector<std::string> expected{".",
                                    "..",
                                    being_made,
                                    "mine.new",
                                    "mine.txt",
                                    map_name(key_of(1).name()),
                                    part_name(key_of(1).name())};
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(names, expected);
}

TEST_F(KeptFolderTest, TakesFourFifthsOfWhatIsFree) {
  const auto folder = cache_.open();
  const std::uint64_t free_nbytes = folder->disk().space().free_nbytes;
  EXPECT_NEAR(static_cast<double>(folder->most_nbytes()), 0.8 * static_cast<double>(free_nbytes),
              0.05 * static_cast<double>(free_nbytes));
}

TEST_F(KeptFolderTest, ARowTellsWhatAnArrayIs) {
  make(1, 4, 50);
  make(2, 2, 20);
  const auto open = cache_.open()->find(key_of(2), kNbytes);
  const std::vector<KeptRow> rows = list_kept(*cache_.open());
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].name, key_of(2).name());
  EXPECT_EQ(rows[0].label, key_of(2).label);
  EXPECT_EQ(rows[0].key, key_of(2).text);
  EXPECT_EQ(rows[0].nbytes, kNbytes);
  EXPECT_EQ(rows[0].blocks, 4u);
  EXPECT_EQ(rows[0].kept_blocks, 2u);
  EXPECT_FALSE(rows[0].is_complete);
  EXPECT_TRUE(rows[0].is_open);
  EXPECT_EQ(rows[0].fault, "");
  EXPECT_EQ(rows[1].name, key_of(1).name());
  EXPECT_TRUE(rows[1].is_complete);
  EXPECT_FALSE(rows[1].is_open);
  EXPECT_GE(rows[1].disk_nbytes, kNbytes);
}

TEST_F(KeptFolderTest, ACheckFindsAndRemovesWhatIsBad) {
  for (std::uint64_t number = 1; number <= 6; ++number) {
    make(number, number % 2 == 0 ? 4 : 2, 100 - static_cast<int>(number));
  }
  flip_bit(cache_.part(3), 7);
  flip_bit(cache_.complete(4), kNbytes - 1);
  flip_bit(cache_.map(5), 20);
  ::truncate(cache_.complete(6).c_str(), 100);
  const auto folder = cache_.open();
  std::vector<std::string> faults;
  for (const KeptRow& row : checked(*folder)) {
    faults.push_back(row.fault);
  }
  const std::string differ = "bytes differ from their CRC";
  // The map of 5 was written to last.
  EXPECT_EQ(faults, (std::vector<std::string>{"its map is missing, damaged or of another version",
                                              "its data is missing, or not as long as the map says",
                                              differ, differ, "", ""}));
  EXPECT_EQ(served(1), (Blocks{0, 1}));
  EXPECT_EQ(served(2).size(), 4u);
  EXPECT_EQ(served(3), (Blocks{1}));
  EXPECT_FALSE(std::filesystem::exists(cache_.complete(4)));
  EXPECT_FALSE(std::filesystem::exists(cache_.map(5)));
  EXPECT_FALSE(std::filesystem::exists(cache_.complete(6)));
  for (const KeptRow& row : checked(*folder)) {
    EXPECT_EQ(row.fault, "") << row.name;
  }
}

TEST_F(KeptFolderTest, ADropRemovesWhatIsNamed) {
  make(1, 4, 0);
  make(2, 1, 0);
  const auto folder = cache_.open();
  const std::vector<KeptRow> rows =
      drop_kept(*folder, [](const KeptRow& row) { return row.name == key_of(1).name(); });
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].fault, "");
  EXPECT_EQ(list_kept(*folder).size(), 1u);
  drop_kept(*folder, [](const KeptRow&) { return true; });
  EXPECT_TRUE(list_kept(*folder).empty());
}

}  // namespace
}  // namespace npyfs
