// SPDX-License-Identifier: Apache-2.0
//
// Decoded chunks as a source of bytes.

#include "formats/bytes/chunk_source.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "tests/support/fake_table.h"
#include "tests/support/read_plan.h"

namespace npyfs {
namespace {

using testing::FakeSource;
using testing::refusal_of;

constexpr std::uint64_t kChunkNbytes = 100;
constexpr std::uint64_t kNbytes = 1234;

char byte_at(std::uint64_t offset) { return static_cast<char>(offset * 7 + offset / 100); }

std::string bytes_at(std::uint64_t offset, std::uint64_t nbytes) {
  std::string bytes;
  for (std::uint64_t i = 0; i < nbytes; ++i) {
    bytes += byte_at(offset + i);
  }
  return bytes;
}

// Bytes 310 to 319 of the whole are damaged; chunk 7 cannot be decoded at all.
class Chunks : public ChunkSource {
 public:
  std::uint64_t chunk_nbytes(std::uint64_t chunk) const override {
    return std::min(kChunkNbytes, kNbytes - chunk * kChunkNbytes);
  }
  void decode(std::uint64_t chunk, std::span<std::byte> out,
              DecodeContext& context) const override {
    for (std::size_t i = 0; i < out.size(); ++i) {
      out[i] = static_cast<std::byte>(byte_at(chunk * kChunkNbytes + i));
    }
    if (chunk == 3) {
      context.mark_damaged({10, 20},
                           std::make_exception_ptr(Error(ErrorKind::kCorrupt, "ten are bad")));
    }
    if (chunk == 7) {
      throw Error(ErrorKind::kCorrupt, "all is bad");
    }
  }
};

class Cache : public ChunkCache {
 public:
  std::shared_ptr<const Block> get(const ChunkSource& chunks, std::uint64_t chunk) override {
    auto& block = blocks_[chunk];
    if (block == nullptr) {
      block = std::make_shared<const Block>(testing::decode_chunk(chunks, chunk));
    }
    return block;
  }

 private:
  std::map<std::uint64_t, std::shared_ptr<const Block>> blocks_;
};

class CachedSourceTest : public ::testing::Test {
 protected:
  std::string read(std::uint64_t offset, std::uint64_t nbytes) const {
    std::string bytes(nbytes, '?');
    source_.read_at(offset, std::as_writable_bytes(std::span(bytes)));
    return bytes;
  }

  const std::shared_ptr<const FakeSource> base_ =
      std::make_shared<FakeSource>("base.gz", "compressed", 42);
  Cache cache_;
  const CachedSource source_{base_, kNbytes, kChunkNbytes, std::make_unique<Chunks>(), cache_};
};

TEST_F(CachedSourceTest, IsItsBaseButForTheBytes) {
  EXPECT_EQ(source_.name(), "base.gz");
  EXPECT_EQ(source_.nbytes(), kNbytes);
  EXPECT_EQ(source_.mtime_ns(), 42);
  source_.check_unchanged();
  base_->set_changed();
  EXPECT_TRUE(source_.changed());
  EXPECT_EQ(refusal_of([&] { source_.check_unchanged(); }).kind, ErrorKind::kChanged);
}

TEST_F(CachedSourceTest, GivesAnySlice) {
  std::mt19937 random(1);
  for (int i = 0; i < 2000; ++i) {
    const std::uint64_t offset = random() % (kNbytes + 1);
    const std::uint64_t nbytes = random() % std::min<std::uint64_t>(250, kNbytes - offset + 1);
    const std::uint64_t end = offset + nbytes;
    if ((offset < 800 && end > 700) || (offset < 320 && end > 310)) {
      continue;
    }
    ASSERT_EQ(read(offset, nbytes), bytes_at(offset, nbytes)) << offset << " " << nbytes;
  }
  EXPECT_EQ(read(800, kNbytes - 800), bytes_at(800, kNbytes - 800)) << "the last chunk is short";
}

TEST_F(CachedSourceTest, EndsWhereItSays) {
  EXPECT_EQ(read(kNbytes, 0), "");
  EXPECT_EQ(refusal_of([&] { read(kNbytes - 1, 2); }).kind, ErrorKind::kCorrupt);
}

TEST_F(CachedSourceTest, RefusesDamagedBytesOnly) {
  EXPECT_EQ(read(250, 60), bytes_at(250, 60));
  EXPECT_EQ(read(320, 80), bytes_at(320, 80));
  EXPECT_EQ(refusal_of([&] { read(319, 1); }).text, "ten are bad");
  EXPECT_EQ(refusal_of([&] { read(310, 1); }).text, "ten are bad");
  EXPECT_EQ(refusal_of([&] { read(0, 400); }).text, "ten are bad");
}

TEST_F(CachedSourceTest, RefusesAChunkThatCannotBeDecoded) {
  EXPECT_EQ(read(690, 10), bytes_at(690, 10));
  EXPECT_EQ(refusal_of([&] { read(690, 11); }).text, "all is bad");
  EXPECT_EQ(read(800, 10), bytes_at(800, 10));
}

TEST(Block, NamesTheDamageThatIsTouched) {
  Block block;
  block.bytes.resize(100);
  block.damage.push_back({{10, 20}, std::make_exception_ptr(Error(ErrorKind::kCorrupt, "one"))});
  block.damage.push_back({{50, 51}, std::make_exception_ptr(Error(ErrorKind::kCorrupt, "two"))});
  block.require_good({0, 10});
  block.require_good({20, 50});
  block.require_good({51, 100});
  EXPECT_EQ(refusal_of([&] { block.require_good({19, 60}); }).text, "one");
  EXPECT_EQ(refusal_of([&] { block.require_good({50, 51}); }).text, "two");
}

// Such as no cache should give.
class ShortCache : public ChunkCache {
 public:
  std::shared_ptr<const Block> get(const ChunkSource& /*chunks*/,
                                   std::uint64_t /*chunk*/) override {
    auto block = std::make_shared<Block>();
    block->bytes.resize(4);
    return block;
  }
};

TEST(CachedSource, ABlockThatIsTooShortIsNotReadBeyondItsEnd) {
  ShortCache cache;
  const CachedSource source(std::make_shared<MemorySource>("short", std::vector<std::byte>(1)),
                            kNbytes, kChunkNbytes, std::make_unique<const Chunks>(), cache);
  std::vector<std::byte> out(2);
  EXPECT_NO_THROW(source.read_at(2, out));
  EXPECT_THROW(source.read_at(4, out), Error);
  EXPECT_THROW(source.read_at(3, out), Error);
}

TEST(ChunkSource, HasASerialOfItsOwn) {
  const Chunks chunks;
  const Chunks copy(chunks);
  EXPECT_NE(copy.serial(), chunks.serial());
}

}  // namespace
}  // namespace npyfs
