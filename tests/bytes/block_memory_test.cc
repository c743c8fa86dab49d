// SPDX-License-Identifier: Apache-2.0
//
// Memory of chunks keeps what is written to it, at any size; little of it is held back.

#include "formats/bytes/block_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <new>
#include <random>
#include <utility>
#include <vector>

namespace npyfs {
namespace {

TEST(BlockBytes, KeepsWhatIsWrittenAtAnySize) {
  constexpr std::size_t kHuge = std::size_t{2} << 20;
  std::mt19937 random(1);
  std::vector<BlockBytes> held;
  for (const std::size_t nbytes : {std::size_t{0}, std::size_t{1}, std::size_t{4096}, kHuge - 1,
                                   kHuge, kHuge + 1, 2 * kHuge + 4095, 2 * kHuge + 4096}) {
    BlockBytes bytes;
    bytes.resize(nbytes);
    for (std::size_t i = 0; i < nbytes; ++i) {
      bytes[i] = static_cast<std::byte>(i * 31 + nbytes);
    }
    held.push_back(std::move(bytes));
    if (random() % 2 == 0) {
      held.push_back(held.back());
    }
  }
  for (const BlockBytes& bytes : held) {
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      ASSERT_EQ(bytes[i], static_cast<std::byte>(i * 31 + bytes.size())) << bytes.size();
    }
  }
}

TEST(BlockBytes, GrowsWithItsContents) {
  BlockBytes bytes(10, std::byte{7});
  bytes.resize(std::size_t{5} << 20);
  bytes.resize(10);
  bytes.shrink_to_fit();
  EXPECT_EQ(bytes, BlockBytes(10, std::byte{7}));
}

TEST(BlockBytes, LargeOnesBeginAHugePage) {
  BlockBytes bytes;
  bytes.resize(std::size_t{3} << 20);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(bytes.data()) % (std::size_t{2} << 20), 0U);
}

TEST(BlockMemory, IsUsedAgain) {
  // Sizes that need not be equal, but close.
  std::byte* const first = take_block_memory(1'000'000);
  give_back_block_memory(first, 1'000'000);
  std::byte* const second = take_block_memory(1'030'000);
  EXPECT_TRUE(first == second);
  std::fill(second, second + 1'030'000, std::byte{1});
  give_back_block_memory(second, 1'030'000);
}

TEST(BlockMemory, IsKeptForFewBlocksOnly) {
  const auto mapped_nbytes = [] {
    std::ifstream statm("/proc/self/statm");
    std::size_t pages = 0;
    statm >> pages;
    return pages * 4096;
  };
  constexpr std::size_t kNbytes = std::size_t{3} << 20;
  const std::size_t before = mapped_nbytes();
  std::vector<std::byte*> taken(50);
  for (std::byte*& bytes : taken) {
    bytes = take_block_memory(kNbytes);
  }
  EXPECT_GT(mapped_nbytes(), before + 30 * kNbytes);
  for (std::byte* bytes : taken) {
    give_back_block_memory(bytes, kNbytes);
  }
  EXPECT_LE(mapped_nbytes(), before + (std::size_t{16} << 20));
  give_back_block_memory(take_block_memory(20 * kNbytes), 20 * kNbytes);
  EXPECT_LE(mapped_nbytes(), before + (std::size_t{16} << 20));
}

TEST(BlockMemory, RefusesWhatNobodyHas) {
  EXPECT_THROW(take_block_memory(SIZE_MAX), std::bad_alloc);
  EXPECT_THROW(take_block_memory(SIZE_MAX / 2), std::bad_alloc);
}

TEST(Buffer, BelongsToOne) {
  Buffer first(300'000);
  std::fill(first.bytes().begin(), first.bytes().end(), std::byte{5});
  const std::byte* const at = first.bytes().data();
  Buffer second(std::move(first));
  EXPECT_TRUE(second.bytes().data() == at);
  second.shorten(10);
  Buffer third;
  third = std::move(second);
  EXPECT_EQ(third.bytes().size(), 10U);
  EXPECT_EQ(third.bytes()[9], std::byte{5});
  third = Buffer(20);
  EXPECT_EQ(third.bytes().size(), 20U);
}

}  // namespace
}  // namespace npyfs
