// SPDX-License-Identifier: Apache-2.0
//
// Decoded payloads go through the one cache: a record is read and decoded once, however many ask.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "formats/arrays/layout.h"
#include "fs/block_cache.h"
#include "fs/verified_records.h"
#include "tests/support/fake_table.h"

namespace npyfs {
namespace {

std::string read_payload(const std::string& name) {
  std::ifstream file(std::filesystem::path(NPYFS_TEST_DATA) / "payloads" / name, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(DecodeOnce, EightReadersOfAnImageDecodeItOnce) {
  for (const std::string name : {"images/rgb.jpg", "audio/s16.flac"}) {
    const std::string payload = read_payload(name);
    ASSERT_FALSE(payload.empty());
    const auto table = testing::make_table(testing::bytes_field("x", {payload, payload}));
    const LaidOutField laid =
        lay_out("x", table->fields().at(0), table, {}, [](const std::string&) {});
    const Array& array = *laid.arrays.at(0).array;
    VerifiedRecords verified(Verify::kRead);
    BlockCache cache(1 << 20, verified);
    table->source().forget_reads();
    std::vector<std::jthread> readers;
    for (int reader = 0; reader < 8; ++reader) {
      readers.emplace_back([&] {
        Plan plan;
        array.plan({0, array.nbytes()}, plan);
        for (const Piece& piece : plan.pieces()) {
          ASSERT_EQ(piece.kind, Piece::Kind::kChunk);
          const auto block = cache.get(*piece.chunks, piece.chunk);
          block->require_good({piece.offset, piece.offset + piece.nbytes});
        }
      });
    }
    readers.clear();
    // Whole, once: a decoder that ran twice would have read them twice.
    EXPECT_EQ(table->source().read_nbytes(), 2 * payload.size()) << name;
  }
}

}  // namespace
}  // namespace npyfs
