// SPDX-License-Identifier: Apache-2.0
//
// Filling goes on where it ended, and not past damage.

#include "kept/fill_array.h"

#include <gtest/gtest.h>

#include "tests/kept/faulty_disk.h"
#include "tests/kept/kept_setting.h"

namespace npyfs {
namespace {

using testing::CacheFolder;
using testing::content_of;
using testing::fill_reference;
using testing::flip_bit;
using testing::key_of;
using testing::read_block;
using testing::reference;

constexpr std::uint64_t kNbytes = 20 * kKeptBlockNbytes + 5;

class FillArrayTest : public ::testing::Test {
 protected:
  ~FillArrayTest() override { testing::set_disk_faults({}); }

  std::shared_ptr<KeptArray> open() { return folder_->open(key_of(1), kNbytes); }
  // Reads the reference and notes which blocks were asked for; stops before `stop_at`.
  FillEnd fill(KeptArray& array, std::uint64_t stop_at = 1000, std::uint64_t damaged = 1000) {
    read_.clear();
    return fill_array(
        array,
        [&](std::uint64_t offset, std::span<std::byte> out) {
          const std::uint64_t block = offset / kKeptBlockNbytes;
          read_.push_back(block);
          if (block == damaged) {
            throw Error(ErrorKind::kCorrupt, "a damaged record");
          }
          fill_reference(1, offset, out);
          return true;
        },
        [&](std::uint64_t block, std::uint64_t of_blocks) {
          EXPECT_EQ(of_blocks, 21u);
          return block < stop_at || block == of_blocks;
        });
  }

  CacheFolder cache_;
  std::shared_ptr<KeptFolder> folder_ = cache_.open();
  std::vector<std::uint64_t> read_;
};

TEST_F(FillArrayTest, CompletesTheArray) {
  EXPECT_EQ(fill(*open()), FillEnd::kComplete);
  EXPECT_EQ(read_.size(), 21u);
  EXPECT_EQ(content_of(cache_.complete(1)), reference(1, 0, kNbytes));
  EXPECT_EQ(fill(*open()), FillEnd::kComplete);
  EXPECT_TRUE(read_.empty());
}

TEST_F(FillArrayTest, GoesOnWhereItEnded) {
  EXPECT_EQ(fill(*open(), 18), FillEnd::kStopped);
  EXPECT_EQ(fill(*open()), FillEnd::kComplete);
  EXPECT_EQ(read_, (std::vector<std::uint64_t>{16, 17, 18, 19, 20}));
  EXPECT_EQ(content_of(cache_.complete(1)), reference(1, 0, kNbytes));
}

TEST_F(FillArrayTest, ReadsAgainWhatWentBad) {
  EXPECT_EQ(fill(*open(), 18), FillEnd::kStopped);
  flip_bit(cache_.part(1), 3 * kKeptBlockNbytes);
  EXPECT_EQ(fill(*open()), FillEnd::kComplete);
  EXPECT_EQ(read_, (std::vector<std::uint64_t>{3, 16, 17, 18, 19, 20}));
  EXPECT_EQ(content_of(cache_.complete(1)), reference(1, 0, kNbytes));
}

TEST_F(FillArrayTest, IsNotCompleteWithADamagedRecord) {
  const auto array = open();
  EXPECT_EQ(fill(*array, 1000, 4), FillEnd::kDamaged);
  EXPECT_EQ(read_block(*array, 1, 3), "hit");
  EXPECT_EQ(read_block(*array, 1, 4), "miss");
  EXPECT_EQ(read_block(*array, 1, 20), "hit");
  EXPECT_FALSE(array->is_complete());
}

TEST_F(FillArrayTest, EndsWhereTheDiskFails) {
  const auto array = open();
  testing::set_disk_faults({.writes = 1, .error = ENOSPC});
  EXPECT_EQ(fill(*array), FillEnd::kNoRoom);
  testing::set_disk_faults({.syncs = 1});
  EXPECT_EQ(fill(*array), FillEnd::kFailed);
  testing::set_disk_faults({});
  ASSERT_TRUE(folder_->drop(array->name()));
  EXPECT_EQ(fill(*array), FillEnd::kDropped);
}

}  // namespace
}  // namespace npyfs
