// SPDX-License-Identifier: Apache-2.0
//
// Filling goes on where it ended, and not past damage.

#include "kept/fill_array.h"

#include <gtest/gtest.h>

#include <new>
#include <set>

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
  // Reads the reference and notes which blocks were asked for; stops when it has read `most`.
  FillEnd fill(const std::shared_ptr<KeptArray>& array, std::uint64_t most = 1000,
               std::set<std::uint64_t> damaged = {}) {
    read_.clear();
    ArrayFill filling(
        array,
        [&](std::uint64_t offset, std::span<std::byte> out) {
          const std::uint64_t block = offset / kKeptBlockNbytes;
          read_.push_back(block);
          if (damaged.contains(block)) {
            throw Error(fault_, "a damaged record in " + std::to_string(block));
          }
          fill_reference(1, offset, out);
        },
        [&] { return read_.size() >= most; });
    std::uint64_t nbytes = 0;
    while (const auto more = filling.fill_some()) {
      nbytes += *more;
    }
    const FillEnd end = filling.finish();
    if (end == FillEnd::kComplete && !read_.empty()) {
      EXPECT_EQ(nbytes, kNbytes);
    }
    unread_ = filling.unread_blocks();
    why_ = filling.why();
    return end;
  }

  ErrorKind fault_ = ErrorKind::kCorrupt;
  std::uint64_t unread_ = 0;
  std::string why_;
  CacheFolder cache_;
  std::shared_ptr<KeptFolder> folder_ = cache_.open();
  std::vector<std::uint64_t> read_;
};

TEST_F(FillArrayTest, CompletesTheArray) {
  EXPECT_EQ(fill(open()), FillEnd::kComplete);
  EXPECT_EQ(read_.size(), 21u);
  EXPECT_EQ(content_of(cache_.complete(1)), reference(1, 0, kNbytes));
  EXPECT_EQ(fill(open()), FillEnd::kComplete);
  EXPECT_TRUE(read_.empty());
}

TEST_F(FillArrayTest, GoesOnWhereItEnded) {
  EXPECT_EQ(fill(open(), 16), FillEnd::kStopped);
  EXPECT_EQ(fill(open()), FillEnd::kComplete);
  EXPECT_EQ(read_, (std::vector<std::uint64_t>{16, 17, 18, 19, 20}));
  EXPECT_EQ(content_of(cache_.complete(1)), reference(1, 0, kNbytes));
}

TEST_F(FillArrayTest, ReadsAgainWhatWentBad) {
  EXPECT_EQ(fill(open(), 16), FillEnd::kStopped);
  flip_bit(cache_.part(1), 3 * kKeptBlockNbytes);
  EXPECT_EQ(fill(open()), FillEnd::kComplete);
  EXPECT_EQ(read_, (std::vector<std::uint64_t>{3, 16, 17, 18, 19, 20}));
  EXPECT_EQ(content_of(cache_.complete(1)), reference(1, 0, kNbytes));
}

TEST_F(FillArrayTest, IsNotCompleteWithADamagedRecord) {
  const auto array = open();
  EXPECT_EQ(fill(array, 1000, {9, 4}), FillEnd::kDamaged);
  EXPECT_EQ(unread_, 2u);
  EXPECT_EQ(why_, "a damaged record in 4");
  EXPECT_EQ(read_block(*array, 1, 3), "hit");
  EXPECT_EQ(read_block(*array, 1, 4), "miss");
  EXPECT_EQ(read_block(*array, 1, 20), "hit");
  EXPECT_FALSE(array->is_complete());
}

TEST_F(FillArrayTest, EndsWhereASourceHasChanged) {
  const auto array = open();
  fault_ = ErrorKind::kChanged;
  EXPECT_EQ(fill(array, 1000, {9}), FillEnd::kChanged);
  EXPECT_EQ(why_, "a damaged record in 9");
  EXPECT_EQ(read_.back(), 9u);
  EXPECT_EQ(read_block(*array, 1, 8), "hit");
}

TEST_F(FillArrayTest, EndsWhereThereIsNoMemory) {
  const auto array = open();
  ArrayFill filling(array, [](std::uint64_t, std::span<std::byte>) { throw std::bad_alloc(); });
  EXPECT_EQ(filling.fill_some(), std::nullopt);
  EXPECT_EQ(filling.finish(), FillEnd::kFailed);
}

TEST_F(FillArrayTest, EndsWhereTheDiskFails) {
  const auto array = open();
  testing::set_disk_faults({.writes = 1, .error = ENOSPC});
  EXPECT_EQ(fill(array), FillEnd::kNoRoom);
  testing::set_disk_faults({.syncs = 1});
  EXPECT_EQ(fill(array), FillEnd::kFailed);
  testing::set_disk_faults({});
  ASSERT_TRUE(folder_->drop(array->name()));
  EXPECT_EQ(fill(array), FillEnd::kDropped);
}

}  // namespace
}  // namespace npyfs
