// SPDX-License-Identifier: Apache-2.0
//
// Pieces in any order become blocks, and these a complete array; too many of them are dropped.

#include "kept/fill_queue.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <thread>

#include "tests/kept/faulty_disk.h"
#include "tests/kept/kept_setting.h"

namespace npyfs {
namespace {

using testing::CacheFolder;
using testing::content_of;
using testing::key_of;
using testing::read_block;
using testing::reference;

constexpr std::uint64_t kNbytes = 5 * kKeptBlockNbytes + 12345;

class FillQueueTest : public ::testing::Test {
 protected:
  ~FillQueueTest() override { testing::set_disk_faults({}); }
  std::shared_ptr<KeptArray> open(std::span<const std::byte> head = {}) {
    return folder_->open(key_of(1), kNbytes, head);
  }

  CacheFolder cache_;
  std::shared_ptr<KeptFolder> folder_ = cache_.open();
};

void push(FillQueue& queue, const std::shared_ptr<KeptArray>& array, std::uint64_t offset,
          std::uint64_t nbytes) {
  queue.push(array, offset, reference(1, offset, nbytes));
}

// Ranges that cover the array, each a part of some other, too.
std::vector<std::pair<std::uint64_t, std::uint64_t>> shuffled_pieces(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::pair<std::uint64_t, std::uint64_t>> pieces;
  for (std::uint64_t at = 0; at < kNbytes;) {
    const std::uint64_t n = std::min<std::uint64_t>(1 + random() % 300'000, kNbytes - at);
    const std::uint64_t before = std::min<std::uint64_t>(at, random() % 5000);
    pieces.emplace_back(at - before, n + before);
    at += n;
  }
  std::shuffle(pieces.begin(), pieces.end(), random);
  return pieces;
}

TEST_F(FillQueueTest, MakesAnArrayOfPiecesInAnyOrder) {
  std::vector<std::shared_ptr<KeptArray>> completed;
  FillQueue queue({.on_complete = [&](const std::shared_ptr<KeptArray>& array) {
    completed.push_back(array);
  }});
  const auto array = open();
  for (const auto& [offset, nbytes] : shuffled_pieces(1)) {
    push(queue, array, offset, nbytes);
  }
  queue.drain();
  EXPECT_TRUE(array->is_complete());
  ASSERT_EQ(completed.size(), 1u);
  EXPECT_EQ(completed[0], array);
  EXPECT_EQ(content_of(cache_.complete(1)), reference(1, 0, kNbytes));
  EXPECT_EQ(queue.counts().dropped_blocks, 0u);
  EXPECT_EQ(queue.counts().waiting_nbytes, 0u);
}

TEST_F(FillQueueTest, ManyThreadsBringPieces) {
  FillQueue queue;
  const auto array = open();
  std::vector<std::thread> threads;
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    threads.emplace_back([&, seed] {
      for (const auto& [offset, nbytes] : shuffled_pieces(seed)) {
        push(queue, array, offset, nbytes);
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  queue.drain();
  EXPECT_TRUE(array->is_complete());
  EXPECT_EQ(content_of(cache_.complete(1)), reference(1, 0, kNbytes));
}

TEST_F(FillQueueTest, TheHeadNeedNotBeBrought) {
  FillQueue queue;
  const auto head = reference(1, 0, 128);
  const auto array = open(head);
  push(queue, array, 128, kKeptBlockNbytes - 128);
  queue.drain();
  EXPECT_EQ(read_block(*array, 1, 0), "hit");
}

TEST_F(FillQueueTest, ABlockThatLacksAByteIsNotWritten) {
  FillQueue queue;
  const auto array = open();
  push(queue, array, 1, kKeptBlockNbytes - 1);
  push(queue, array, kKeptBlockNbytes, kKeptBlockNbytes - 1);
  queue.drain();
  EXPECT_EQ(read_block(*array, 1, 0), "miss");
  EXPECT_EQ(read_block(*array, 1, 1), "miss");
}

TEST_F(FillQueueTest, TheBlockBegunFirstIsDroppedForAnother) {
  FillQueue queue({.most_half_nbytes = 2 * kKeptBlockNbytes});
  const auto array = open();
  for (const std::uint64_t block : {0, 1, 2}) {
    push(queue, array, block * kKeptBlockNbytes, 1000);
  }
  for (const std::uint64_t block : {2, 1, 0}) {
    push(queue, array, block * kKeptBlockNbytes + 1000, kKeptBlockNbytes - 1000);
  }
  queue.drain();
  EXPECT_EQ(read_block(*array, 1, 2), "hit");
  EXPECT_EQ(read_block(*array, 1, 1), "hit");
  EXPECT_EQ(read_block(*array, 1, 0), "miss");
  EXPECT_EQ(queue.counts().dropped_blocks, 1u);
}

TEST_F(FillQueueTest, BlocksBehindASlowDiskAreDropped) {
  const auto array = open();
  const DiskFile map = DiskFolder(cache_.path()).open(map_name(array->name()), O_RDWR);
  ASSERT_TRUE(map.try_lock(DiskFile::Lock::kWriter));  // the first batch waits, and gives up
  FillQueue queue({.most_waiting_nbytes = 2 * kKeptBlockNbytes});
  push(queue, array, 0, kNbytes);
  queue.drain();
  EXPECT_EQ(queue.counts().dropped_blocks, 6u);
  map.unlock(DiskFile::Lock::kWriter);
  push(queue, array, 0, kKeptBlockNbytes);
  queue.drain();
  EXPECT_EQ(read_block(*array, 1, 0), "hit");
}

TEST_F(FillQueueTest, WhatIsKeptIsNotWantedAgain) {
  FillQueue queue;
  const auto array = open();
  EXPECT_FALSE(queue.has(array, 0, kKeptBlockNbytes));
  push(queue, array, 0, kKeptBlockNbytes);
  EXPECT_TRUE(queue.has(array, 0, kKeptBlockNbytes));
  EXPECT_FALSE(queue.has(array, 0, kKeptBlockNbytes + 1));
  queue.drain();
  EXPECT_TRUE(queue.has(array, 5, 10));
}

TEST_F(FillQueueTest, AnArrayIsHeldNoLongerThanItIsFilled) {
  FillQueue queue;
  auto array = open();
  const std::weak_ptr<KeptArray> watched = array;
  push(queue, array, 0, 100);
  queue.forget(*array);
  array.reset();
  EXPECT_TRUE(watched.expired());
}

TEST_F(FillQueueTest, ChecksACompleteFileThatWasTouched) {
  testing::write(*open(), 1, {0, 1, 2, 3, 4, 5});
  std::filesystem::permissions(cache_.complete(1), std::filesystem::perms::owner_all);
  const auto array = open();
  ASSERT_TRUE(array->needs_check());
  bool is_told = false;
  FillQueue queue({.on_complete = [&](const std::shared_ptr<KeptArray>&) { is_told = true; }});
  queue.check_later(array);
  queue.drain();
  EXPECT_TRUE(array->is_complete());
  EXPECT_TRUE(is_told);
}

TEST_F(FillQueueTest, AFailingDiskLosesBlocksAndNothingElse) {
  const auto array = open();
  testing::set_disk_faults({.writes = 3, .syncs = 3, .error = ENOSPC});
  {
    FillQueue queue;
    for (const auto& [offset, nbytes] : shuffled_pieces(5)) {
      push(queue, array, offset, nbytes);
    }
    queue.drain();
  }
  EXPECT_GT(testing::disk_faults(), 0u);
  testing::set_disk_faults({});
  const auto again = open();
  ASSERT_TRUE(again);
  for (std::uint64_t block = 0; block < again->block_count(); ++block) {
    EXPECT_NE(read_block(*again, 1, block), "wrong bytes");
  }
}

}  // namespace
}  // namespace npyfs
