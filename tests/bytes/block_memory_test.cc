// SPDX-License-Identifier: Apache-2.0
//
// Memory of decoded chunks keeps what is written to it, at any size.

#include "formats/bytes/block_memory.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>

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

}  // namespace
}  // namespace npyfs
