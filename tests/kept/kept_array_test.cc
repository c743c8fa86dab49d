// SPDX-License-Identifier: Apache-2.0
//
// One kept array: what was written is read, and nothing else is, whatever happened to the files.

#include "kept/kept_array.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "kept/eviction.h"
#include "tests/kept/faulty_disk.h"
#include "tests/kept/kept_setting.h"

namespace npyfs {
namespace {

using testing::all_blocks;
using testing::CacheFolder;
using testing::content_of;
using testing::first_missing;
using testing::flip_bit;
using testing::key_of;
using testing::read;
using testing::read_block;
using testing::reference;
using testing::write;

using Outcome = KeptArray::Outcome;

constexpr std::uint64_t kNbytes = 3 * kKeptBlockNbytes + 77;

class KeptArrayTest : public ::testing::Test {
 protected:
  ~KeptArrayTest() override { testing::set_disk_faults({}); }

  // As another process would.
  std::shared_ptr<KeptArray> open() { return cache_.open()->open(key_of(1), kNbytes); }
  void make_complete() { ASSERT_EQ(write(*open(), 1, {0, 1, 2, 3}), Outcome::kKept); }

  CacheFolder cache_;
};

TEST_F(KeptArrayTest, GivesBackWhatWasWritten) {
  const auto array = open();
  ASSERT_TRUE(array);
  EXPECT_EQ(read_block(*array, 1, 0), "miss");
  ASSERT_EQ(write(*array, 1, {0, 3}), Outcome::kKept);
  EXPECT_TRUE(array->has(0));
  EXPECT_FALSE(array->has(1));
  EXPECT_EQ(read(*array, 1, 5, 1000), "hit");
  EXPECT_EQ(read_block(*array, 1, 3), "hit");
  EXPECT_EQ(read(*array, 1, kKeptBlockNbytes - 1, 2), "miss");  // the second byte is not there
  EXPECT_EQ(read(*array, 1, kNbytes - 1, 2), "miss");           // nor behind the end
  EXPECT_FALSE(array->is_complete());
  EXPECT_EQ(first_missing(*array), 1u);
}

TEST_F(KeptArrayTest, AnotherProcessReadsIt) {
  const auto first = open();
  const auto second = open();
  ASSERT_EQ(write(*first, 1, {1}), Outcome::kKept);
  EXPECT_EQ(read_block(*second, 1, 1), "hit");
  EXPECT_EQ(read_block(*open(), 1, 1), "hit");
}

TEST_F(KeptArrayTest, ACompleteOneIsThePlainFile) {
  const auto array = open();
  const auto other = open();
  ASSERT_EQ(write(*other, 1, {2, 0}), Outcome::kKept);
  EXPECT_EQ(array->complete_descriptor(), -1);
  ASSERT_EQ(write(*array, 1, {1, 3}), Outcome::kKept);
  EXPECT_TRUE(array->is_complete());
  EXPECT_EQ(content_of(cache_.complete(1)), reference(1, 0, kNbytes));
  EXPECT_FALSE(std::filesystem::exists(cache_.part(1)));
  testing::Bytes bytes(kNbytes);
  ASSERT_EQ(::pread(array->complete_descriptor(), bytes.data(), kNbytes, 0),
            static_cast<ssize_t>(kNbytes));
  EXPECT_EQ(bytes, reference(1, 0, kNbytes));
  EXPECT_FALSE(other->is_complete());
  other->refresh();
  EXPECT_TRUE(other->is_complete());
  EXPECT_TRUE(open()->is_complete());
  EXPECT_EQ(first_missing(*array), array->block_count());
}

TEST_F(KeptArrayTest, TheOtherFindsOutThatItIsCompleteWhenItWrites) {
  const auto other = open();
  make_complete();
  EXPECT_EQ(write(*other, 1, {0}), Outcome::kKept);
  EXPECT_TRUE(other->is_complete());
}

TEST_F(KeptArrayTest, SaysOnceThatMostOfItWasReadOrIsKept) {
  const auto array = open();
  EXPECT_FALSE(array->note_asked(kNbytes / 2));
  EXPECT_TRUE(array->note_asked(kNbytes / 4 + 2));
  EXPECT_FALSE(array->note_asked(kNbytes));
  ASSERT_EQ(write(*array, 1, {0, 1}), Outcome::kKept);
  const auto later = open();
  EXPECT_FALSE(later->note_asked(1000));
  EXPECT_TRUE(later->note_asked(kKeptBlockNbytes));
}

TEST_F(KeptArrayTest, AFlippedBitOfABlockIsAMissAndIsMended) {
  ASSERT_EQ(write(*open(), 1, {0, 1}), Outcome::kKept);
  flip_bit(cache_.part(1), kKeptBlockNbytes + 4321);
  const auto array = open();
  const auto other = open();
  EXPECT_EQ(read_block(*array, 1, 0), "hit");
  EXPECT_EQ(read_block(*array, 1, 1), "miss");
  EXPECT_EQ(read_block(*other, 1, 1), "miss");
  EXPECT_EQ(first_missing(*array), 1u);
  ASSERT_EQ(write(*array, 1, {1}), Outcome::kKept);
  EXPECT_EQ(read_block(*array, 1, 1), "hit");
  EXPECT_EQ(read_block(*other, 1, 1), "hit");
}

TEST_F(KeptArrayTest, ABadBlockOfAnotherProcessDoesNotGetIntoACompleteFile) {
  ASSERT_EQ(write(*open(), 1, {0, 1}), Outcome::kKept);
  flip_bit(cache_.part(1), 99);
  const auto array = open();
  ASSERT_EQ(write(*array, 1, {2, 3}), Outcome::kKept);
  EXPECT_FALSE(array->is_complete());
  ASSERT_EQ(write(*array, 1, {0}), Outcome::kKept);
  EXPECT_TRUE(array->is_complete());
  EXPECT_EQ(content_of(cache_.complete(1)), reference(1, 0, kNbytes));
}

TEST_F(KeptArrayTest, ACompleteFileThatSomebodyWroteToIsServedByGoodBlocksOnly) {
  make_complete();
  flip_bit(cache_.complete(1), 2 * kKeptBlockNbytes);
  const auto array = open();
  ASSERT_TRUE(array);
  EXPECT_FALSE(array->is_complete());
  EXPECT_TRUE(array->needs_check());
  EXPECT_EQ(read_block(*array, 1, 0), "hit");
  EXPECT_EQ(read_block(*array, 1, 2), "miss");
  EXPECT_EQ(write(*array, 1, {2}), Outcome::kFailed);  // the kernel may have it
  EXPECT_FALSE(array->check());
  EXPECT_TRUE(array->is_dropped());
  EXPECT_FALSE(std::filesystem::exists(cache_.complete(1)));
  EXPECT_EQ(read_block(*array, 1, 2), "miss");
  make_complete();
  EXPECT_EQ(content_of(cache_.complete(1)), reference(1, 0, kNbytes));
}

TEST_F(KeptArrayTest, ACopiedCompleteFileIsCompleteAgainOnceChecked) {
  make_complete();
  std::filesystem::rename(cache_.complete(1), cache_.file("aside"));
  std::filesystem::copy_file(cache_.file("aside"), cache_.complete(1));
  const auto array = open();
  EXPECT_FALSE(array->is_complete());
  EXPECT_EQ(read_block(*array, 1, 2), "hit");
  EXPECT_TRUE(array->check());
  EXPECT_TRUE(array->is_complete());
  EXPECT_TRUE(open()->is_complete());
}

TEST_F(KeptArrayTest, AProcessThatDiedBeforeItStampedTheFileLosesNothing) {
  make_complete();
  const DiskFolder disk(cache_.path());
  disk.open(map_name(key_of(1).name()), O_RDWR).write(192, testing::Bytes(40));
  const auto array = open();
  EXPECT_TRUE(array->needs_check());
  EXPECT_EQ(read_block(*array, 1, 1), "hit");
  EXPECT_TRUE(array->check());
  EXPECT_TRUE(array->is_complete());
}

TEST_F(KeptArrayTest, FilesOfAnotherLengthAreMadeAnew) {
  for (const std::uint64_t nbytes : {kNbytes - 1, kNbytes + 1, std::uint64_t{0}}) {
    make_complete();
    ::truncate(cache_.complete(1).c_str(), static_cast<off_t>(nbytes));
    const auto array = open();
    ASSERT_TRUE(array) << nbytes;
    EXPECT_FALSE(array->is_complete());
    EXPECT_EQ(read_block(*array, 1, 0), "miss");
    ASSERT_EQ(write(*array, 1, {0}), Outcome::kKept);
    ::truncate(cache_.part(1).c_str(), static_cast<off_t>(nbytes));
    EXPECT_EQ(read_block(*open(), 1, 0), "miss");
  }
}

TEST_F(KeptArrayTest, APartThatIsCutWhileItIsReadIsAMiss) {
  const auto array = open();
  ASSERT_EQ(write(*array, 1, {0, 1}), Outcome::kKept);
  std::filesystem::resize_file(cache_.part(1), kKeptBlockNbytes);
  EXPECT_EQ(read_block(*array, 1, 0), "hit");
  EXPECT_EQ(read_block(*array, 1, 1), "miss");
}

TEST_F(KeptArrayTest, AMapThatIsCutWhileItIsReadIsAMiss) {
  const auto array = open();
  ASSERT_EQ(write(*array, 1, {0, 1}), Outcome::kKept);
  std::filesystem::resize_file(cache_.map(1), 50);
  EXPECT_EQ(read_block(*array, 1, 0), "miss");
  EXPECT_TRUE(array->is_dropped());
  EXPECT_EQ(write(*array, 1, {2}), Outcome::kDropped);
  ASSERT_TRUE(open());
  EXPECT_EQ(read_block(*open(), 1, 0), "miss");
  EXPECT_TRUE(cache_.told().empty());
}

TEST_F(KeptArrayTest, ForeignFilesAreMadeAnew) {
  make_complete();
  { std::ofstream(cache_.map(1)) << "something else"; }
  EXPECT_EQ(read_block(*open(), 1, 0), "miss");
  make_complete();
  std::filesystem::remove(cache_.map(1));
  ASSERT_EQ(::symlink("/etc/passwd", cache_.map(1).c_str()), 0);
  EXPECT_EQ(read_block(*open(), 1, 0), "miss");
  EXPECT_TRUE(std::filesystem::exists("/etc/passwd"));
  std::filesystem::remove(cache_.part(1));
  ASSERT_EQ(::mkfifo(cache_.part(1).c_str(), 0600), 0);
  EXPECT_EQ(read_block(*open(), 1, 0), "miss");
  make_complete();
}

TEST_F(KeptArrayTest, AnotherArrayOfTheSameNameIsNotServed) {
  make_complete();
  KeptKey other = key_of(1);
  other.text += "more=1\n";  // the digest, and so the name, stay
  const auto array = cache_.open()->open(other, kNbytes);
  ASSERT_TRUE(array);
  EXPECT_EQ(read_block(*array, 1, 0), "miss");
}

TEST_F(KeptArrayTest, AMapWithoutItsDataIsNotBelieved) {
  ASSERT_EQ(write(*open(), 1, {0, 1}), Outcome::kKept);
  std::filesystem::remove(cache_.part(1));
  const auto array = open();
  ASSERT_TRUE(array);
  EXPECT_EQ(read_block(*array, 1, 0), "miss");
  ASSERT_EQ(write(*array, 1, all_blocks(*array)), Outcome::kKept);
  EXPECT_TRUE(array->is_complete());
}

TEST_F(KeptArrayTest, WhatWasRemovedIsReadOnAndWrittenNoMore) {
  const auto array = open();
  ASSERT_EQ(write(*array, 1, {0}), Outcome::kKept);
  ASSERT_TRUE(cache_.open()->drop(array->name()));
  EXPECT_EQ(read_block(*array, 1, 0), "hit");
  EXPECT_EQ(write(*array, 1, {1}), Outcome::kDropped);
  EXPECT_TRUE(array->is_dropped());
  EXPECT_TRUE(std::filesystem::is_empty(cache_.path()));
}

TEST_F(KeptArrayTest, AWriterThatTakesTooLongIsNotWaitedFor) {
  const auto array = open();
  const DiskFile map = DiskFolder(cache_.path()).open(map_name(array->name()), O_RDWR);
  ASSERT_TRUE(map.try_lock(DiskFile::Lock::kWriter));
  EXPECT_EQ(write(*array, 1, {0}), Outcome::kBusy);
  map.unlock(DiskFile::Lock::kWriter);
  EXPECT_EQ(write(*array, 1, {0}), Outcome::kKept);
}

TEST_F(KeptArrayTest, WhatCouldNotBeSyncedIsNotThere) {
  const auto array = open();
  testing::set_disk_faults({.syncs = 1});
  EXPECT_EQ(write(*array, 1, {0}), Outcome::kFailed);
  EXPECT_EQ(write(*array, 1, {1}), Outcome::kFailed);
  testing::set_disk_faults({});
  EXPECT_EQ(read_block(*array, 1, 0), "miss");
  EXPECT_EQ(read_block(*open(), 1, 0), "miss");
  ASSERT_EQ(cache_.told().size(), 1u);
  EXPECT_NE(cache_.told()[0].find("cannot sync: Input/output error"), std::string::npos);
  EXPECT_EQ(write(*array, 1, {0}), Outcome::kKept);
}

TEST_F(KeptArrayTest, AFullDiskIsAMiss) {
  const auto array = open();
  testing::set_disk_faults({.writes = 1, .error = ENOSPC});
  EXPECT_EQ(write(*array, 1, {0, 1}), Outcome::kNoRoom);
  EXPECT_EQ(cache_.open()->open(key_of(2), kNbytes), nullptr);
  testing::set_disk_faults({});
  EXPECT_EQ(read_block(*array, 1, 0), "miss");
  // What was written in vain takes no room.
  struct stat status {};
  ASSERT_EQ(::stat(cache_.part(1).c_str(), &status), 0);
  EXPECT_EQ(status.st_blocks, 0);
  EXPECT_EQ(write(*array, 1, all_blocks(*array)), Outcome::kKept);
}

TEST_F(KeptArrayTest, ADiskThatCannotBeReadIsAMiss) {
  const auto array = open();
  ASSERT_EQ(write(*array, 1, {0}), Outcome::kKept);
  testing::set_disk_faults({.reads = 1});
  EXPECT_EQ(read_block(*array, 1, 0), "miss");
  testing::set_disk_faults({});
  EXPECT_EQ(read_block(*array, 1, 0), "hit");
}

TEST_F(KeptArrayTest, AnyRangeIsTheReference) {
  const auto array = open();
  ASSERT_EQ(write(*array, 1, {0, 1, 3}), Outcome::kKept);
  std::uint32_t state = 1;
  const auto random = [&](std::uint64_t below) {
    state = state * 1664525 + 1013904223;
    return (state >> 8) % below;
  };
  for (int i = 0; i < 300; ++i) {
    const std::uint64_t offset = random(kNbytes);
    const std::uint64_t nbytes = random(std::min<std::uint64_t>(100'000, kNbytes - offset) + 1);
    const bool misses =
        nbytes > 0 && offset + nbytes > 2 * kKeptBlockNbytes && offset < 3 * kKeptBlockNbytes;
    EXPECT_EQ(read(*array, 1, offset, nbytes), misses ? "miss" : "hit") << offset << " " << nbytes;
  }
}

// What a read of several ranges answers.
std::string read_ranges(const KeptArray& array,
                        const std::vector<std::pair<std::uint64_t, std::uint64_t>>& ranges) {
  std::vector<testing::Bytes> bytes;
  std::vector<WantedRange> wanted;
  for (const auto& [offset, nbytes] : ranges) {
    bytes.emplace_back(nbytes);
  }
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    wanted.push_back({ranges[i].first, bytes[i]});
  }
  if (!array.read(wanted)) {
    return "miss";
  }
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    if (bytes[i] != reference(1, ranges[i].first, ranges[i].second)) {
      return "wrong bytes";
    }
  }
  return "hit";
}

TEST_F(KeptArrayTest, SeveralRangesAreReadInAnyOrder) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges;
  for (std::uint64_t i = 0; i < 3000; ++i) {
    ranges.emplace_back(i * 7919 * 4099 % (kKeptBlockNbytes - 5000), i % 9 == 0 ? 5000 : i % 50);
  }
  ranges.emplace_back(kNbytes - 77, 77);
  ranges.emplace_back(kNbytes - 77, 77);
  for (const bool is_complete : {false, true}) {
    const auto array = open();
    ASSERT_EQ(write(*array, 1, {0, 3}), Outcome::kKept);
    if (is_complete) {
      ASSERT_EQ(write(*array, 1, {1, 2}), Outcome::kKept);
      ASSERT_TRUE(array->is_complete());
    }
    EXPECT_EQ(read_ranges(*array, ranges), "hit");
    EXPECT_EQ(read_ranges(*array, {{0, 10}, {2 * kKeptBlockNbytes + 5, 1}}),
              is_complete ? "hit" : "miss");
    EXPECT_EQ(read_ranges(*array, {{0, 10}, {kNbytes, 1}}), "miss");
    EXPECT_EQ(read_ranges(*array, {}), "hit");
    EXPECT_TRUE(array->can_read(5, kKeptBlockNbytes - 5));
    EXPECT_EQ(array->can_read(5, kKeptBlockNbytes), is_complete);
    EXPECT_TRUE(array->can_read(kNbytes - 1, 1));
    EXPECT_FALSE(array->can_read(kNbytes - 1, 2));
    EXPECT_TRUE(array->can_read(kKeptBlockNbytes + 5, 0));
  }
}

TEST_F(KeptArrayTest, ABlockThatAnotherProcessWroteCanBeRead) {
  const auto first = open();
  const auto second = open();
  ASSERT_EQ(write(*first, 1, {1}), Outcome::kKept);
  EXPECT_TRUE(second->can_read(kKeptBlockNbytes, kKeptBlockNbytes));
  EXPECT_TRUE(second->has(1));
  flip_bit(cache_.part(1), kKeptBlockNbytes + 100);
  EXPECT_FALSE(open()->can_read(kKeptBlockNbytes, 1));
}

// Between can_read() and read() a block may go: a miss of all ranges then, and never zeros.
TEST_F(KeptArrayTest, RangesOfABlockThatGoesAreAMiss) {
  const auto array = open();
  ASSERT_EQ(write(*array, 1, {0, 1}), Outcome::kKept);
  ASSERT_TRUE(array->can_read(0, 2 * kKeptBlockNbytes));
  ASSERT_GT(evict(cache_.open()->disk(), 1, "", std::chrono::seconds(0)), 0u);
  EXPECT_EQ(read_ranges(*array, {{kKeptBlockNbytes + 9, 9}, {9, 9}}), "miss");
  EXPECT_FALSE(array->can_read(kKeptBlockNbytes, 1));
}

}  // namespace
}  // namespace npyfs
