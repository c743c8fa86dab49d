// SPDX-License-Identifier: Apache-2.0
//
// What is decoded goes through the one cache: a record or a chunk is read and decoded once, however
// many ask.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>
#include <vector>

#include "formats/arrays/chunked_array.h"
#include "formats/arrays/layout.h"
#include "formats/store.h"
#include "formats/zarr/zarr.h"
#include "fs/block_cache.h"
#include "fs/verified_records.h"
#include "tests/support/fake_source.h"
#include "tests/support/fake_table.h"
#include "tests/support/zip_writer.h"

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

// All of the array through the cache, in one order or the other.
void read_chunks(const Array& array, ChunkCache& cache, bool backwards) {
  Plan plan;
  array.plan({0, array.nbytes()}, plan);
  std::vector<Piece> pieces = plan.pieces();
  if (backwards) {
    std::reverse(pieces.begin(), pieces.end());
  }
  for (const Piece& piece : pieces) {
    ASSERT_EQ(piece.kind, Piece::Kind::kChunk);
    const auto block = cache.get(*piece.chunks, piece.chunk);
    block->require_good({piece.offset, piece.offset + piece.nbytes});
  }
}

TEST(DecodeOnce, EightReadersOfADeflatedMemberInflateItOnce) {
  constexpr std::size_t kElements = 100'000;
  std::string elements(kElements, '\0');
  std::mt19937 random(1);
  std::generate(elements.begin(), elements.end(), [&] { return static_cast<char>(random()); });
  const std::string array = R"({"zarr_format":3,"node_type":"array","data_type":"uint8",)"
                            R"("fill_value":0,"chunk_key_encoding":{"name":"default"},)"
                            R"("shape":[100000],"chunk_grid":{"name":"regular","configuration":)"
                            R"({"chunk_shape":[100000]}},"codecs":)";
  std::vector<std::uint64_t> index;
  for (std::uint64_t i = 0; i < 100; ++i) {
    index.insert(index.end(), {i * 1000, 1000});
  }
  const std::string index_bytes(reinterpret_cast<const char*>(index.data()), index.size() * 8);
  const std::vector<std::pair<std::string, std::string>> cases = {
      {R"([{"name":"bytes"}]})", elements},
      {R"([{"name":"sharding_indexed","configuration":{"chunk_shape":[1000],"codecs":)"
       R"([{"name":"bytes"}],"index_codecs":[{"name":"bytes","configuration":)"
       R"({"endian":"little"}}]}}]})",
       elements + index_bytes}};
  for (const auto& [codecs, value] : cases) {
    testing::ZipWriter zip;
    testing::ZipWriter::Options deflated;
    deflated.method = 8;
    zip.add("zarr.json", array + codecs);
    zip.add("c/0", value, deflated);
    const auto source = std::make_shared<const testing::FakeSource>("s.zip", zip.finish());
    VerifiedRecords verified(Verify::kRead);
    BlockCache cache(10 << 20, verified);
    OpenContext context;
    context.cache = &cache;
    const auto store = kZarr.open_store({"s.zip", false, source}, context);
    const auto laid = make_chunked_array(
        std::get<std::shared_ptr<const ChunkGrid>>(store->root.arrays.at(0).parts.at(0)));
    source->forget_reads();
    std::vector<std::jthread> readers;
    for (int reader = 0; reader < 8; ++reader) {
      readers.emplace_back([&, reader] { read_chunks(*laid, cache, reader % 2 == 1); });
    }
    readers.clear();
    EXPECT_GE(source->read_nbytes(), kElements);
    EXPECT_LT(source->read_nbytes(), 2 * kElements) << codecs;
  }
}

}  // namespace
}  // namespace npyfs
