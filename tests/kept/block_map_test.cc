// SPDX-License-Identifier: Apache-2.0
//
// The sidecar: what it says comes back, and what is not it is not believed.

#include "kept/block_map.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include "tests/kept/kept_setting.h"

namespace npyfs {
namespace {

using testing::CacheFolder;
using testing::flip_bit;
using testing::key_of;

constexpr std::uint64_t kNbytes = 3 * kKeptBlockNbytes + 5;

class BlockMapTest : public ::testing::Test {
 protected:
  std::optional<BlockMap> make() {
    const DiskFile file = disk_.open("m", O_RDWR | O_CREAT);
    file.write(0, BlockMap::head(key_of(7), kNbytes));
    file.resize(BlockMap::nbytes(key_of(7), kNbytes));
    return read();
  }
  std::optional<BlockMap> read() { return BlockMap::read(disk_.open("m", O_RDWR)); }

  CacheFolder folder_;
  DiskFolder disk_{folder_.path()};
};

TEST_F(BlockMapTest, SaysWhatItWasTold) {
  const auto map = make();
  ASSERT_TRUE(map);
  EXPECT_EQ(map->key().text, key_of(7).text);
  EXPECT_EQ(map->key().label, "train/x.npy of test 7");
  EXPECT_EQ(map->key().name(), key_of(7).name());
  EXPECT_EQ(map->array_nbytes(), kNbytes);
  EXPECT_EQ(map->block_count(), 4u);
  EXPECT_EQ(map->block_nbytes(3), 5u);
  EXPECT_EQ(map->first_absent(0), 0u);
  map->set(0, 17);
  map->set(1, 0);  // a CRC like any other
  map->set_generation(9);
  const auto again = read();
  ASSERT_TRUE(again);
  EXPECT_EQ(again->crc_of(0), 17u);
  EXPECT_EQ(again->crc_of(1), 0u);
  EXPECT_EQ(again->crc_of(2), std::nullopt);
  EXPECT_EQ(again->first_absent(0), 2u);
  EXPECT_EQ(again->blocks(), (std::vector<bool>{true, true, false, false}));
  EXPECT_EQ(again->generation(), 9u);
  map->clear(0);
  EXPECT_EQ(again->crc_of(0), std::nullopt);
}

TEST_F(BlockMapTest, KeepsTheStamp) {
  const auto map = make();
  EXPECT_EQ(map->stamp(), std::nullopt);
  const FileStamp stamp{kNbytes, 5, -3, 4};
  map->set_stamp(stamp);
  EXPECT_EQ(read()->stamp(), stamp);
  flip_bit(folder_.file("m"), 192);
  EXPECT_EQ(read()->stamp(), std::nullopt);
}

TEST_F(BlockMapTest, AnyBitOfTheHeadCounts) {
  const std::size_t text_nbytes = key_of(7).text.size() + key_of(7).label.size();
  ASSERT_TRUE(make());
  for (std::uint64_t offset = 0; offset < 72; ++offset) {
    flip_bit(folder_.file("m"), offset);
    EXPECT_FALSE(read()) << offset;
    flip_bit(folder_.file("m"), offset);
  }
  for (std::uint64_t offset = 4096; offset < 4096 + text_nbytes; ++offset) {
    flip_bit(folder_.file("m"), offset);
    EXPECT_FALSE(read()) << offset;
    flip_bit(folder_.file("m"), offset);
  }
  EXPECT_TRUE(read());
}

TEST_F(BlockMapTest, AnyBitOfAnEntryCounts) {
  make()->set(2, 0x12345678);
  const std::uint64_t entry = 8192 + 2 * 8;
  for (std::uint64_t offset = entry; offset < entry + 8; ++offset) {
    flip_bit(folder_.file("m"), offset);
    EXPECT_EQ(read()->crc_of(2), std::nullopt) << offset;
    flip_bit(folder_.file("m"), offset);
  }
  EXPECT_EQ(read()->crc_of(2), 0x12345678u);
}

TEST_F(BlockMapTest, AnEntryOfAnotherBlockIsNone) {
  make()->set(2, 0x12345678);
  const DiskFile file = disk_.open("m", O_RDWR);
  std::vector<std::byte> entry(8);
  ASSERT_TRUE(file.read(8192 + 2 * 8, entry));
  file.write(8192 + 1 * 8, entry);
  EXPECT_EQ(read()->crc_of(1), std::nullopt);
}

TEST_F(BlockMapTest, AnotherLengthIsNone) {
  make();
  const auto nbytes = std::filesystem::file_size(folder_.file("m"));
  for (const std::uint64_t length : {nbytes - 1, nbytes + 1, std::uint64_t{71}, std::uint64_t{0}}) {
    std::filesystem::resize_file(folder_.file("m"), length);
    EXPECT_FALSE(read()) << length;
    std::filesystem::remove(folder_.file("m"));
    make();
  }
}

TEST_F(BlockMapTest, AFileCutWhileItIsOpenIsAnError) {
  const auto map = make();
  map->set(3, 1);
  std::filesystem::resize_file(folder_.file("m"), 100);
  EXPECT_THROW(static_cast<void>(map->crc_of(3)), Error);
  EXPECT_THROW(static_cast<void>(map->generation()), Error);
}

}  // namespace
}  // namespace npyfs
