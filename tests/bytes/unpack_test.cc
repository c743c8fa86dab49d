// SPDX-License-Identifier: Apache-2.0

#include "formats/bytes/unpack.h"

#include <bzlib.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <lz4frame.h>
#include <lzma.h>
#include <sys/stat.h>
#include <zlib.h>
#include <zstd.h>

#include <array>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <random>
#include <thread>

#include "formats/bytes/error.h"
#include "tests/support/one_chunk_cache.h"

namespace npyfs {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::OneChunkCache;
using ::testing::StartsWith;
using ByteVector = std::vector<std::byte>;

// Deflates a little, and differs everywhere.
ByteVector some_bytes(std::size_t nbytes, std::uint32_t seed = 1) {
  std::mt19937 random(seed);
  ByteVector bytes(nbytes);
  for (std::byte& b : bytes) {
    b = static_cast<std::byte>(random() & 15);
  }
  return bytes;
}

ByteVector operator+(ByteVector a, const ByteVector& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

ByteVector zstd_frame(std::span<const std::byte> bytes, bool checksum = true) {
  ZSTD_CCtx* context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, checksum ? 1 : 0);
  ByteVector out(ZSTD_compressBound(bytes.size()));
  out.resize(ZSTD_compress2(context, out.data(), out.size(), bytes.data(), bytes.size()));
  ZSTD_freeCCtx(context);
  return out;
}

// The table of the seekable format: skipped like any other such frame.
ByteVector skippable_frame(std::size_t nbytes) {
  ByteVector frame(8 + nbytes, std::byte{0x5a});
  const std::uint32_t head[2] = {0x184D2A5E, static_cast<std::uint32_t>(nbytes)};
  std::memcpy(frame.data(), head, sizeof head);
  return frame;
}

ByteVector bzip2_stream(std::span<const std::byte> bytes) {
  ByteVector out(bytes.size() + bytes.size() / 50 + 1000);
  auto n = static_cast<unsigned>(out.size());
  static char nothing = 0;
  EXPECT_EQ(
      BZ2_bzBuffToBuffCompress(
          reinterpret_cast<char*>(out.data()), &n,
          bytes.empty() ? &nothing : const_cast<char*>(reinterpret_cast<const char*>(bytes.data())),
          static_cast<unsigned>(bytes.size()), 9, 0, 0),
      BZ_OK);
  out.resize(n);
  return out;
}

ByteVector xz_file(std::span<const std::byte> bytes, std::uint64_t block_nbytes) {
  lzma_mt options{};
  options.threads = 1;
  options.block_size = block_nbytes;
  options.preset = 1;
  options.check = LZMA_CHECK_CRC64;
  lzma_stream stream = LZMA_STREAM_INIT;
  EXPECT_EQ(lzma_stream_encoder_mt(&stream, &options), LZMA_OK);
  ByteVector out(bytes.size() * 2 + 100000);
  stream.next_in = reinterpret_cast<const std::uint8_t*>(bytes.data());
  stream.avail_in = bytes.size();
  stream.next_out = reinterpret_cast<std::uint8_t*>(out.data());
  stream.avail_out = out.size();
  while (lzma_code(&stream, LZMA_FINISH) == LZMA_OK) {
  }
  out.resize(stream.total_out);
  lzma_end(&stream);
  return out;
}

// Blocks of 64 KiB.
ByteVector lz4_frame(std::span<const std::byte> bytes, bool independent = true,
                     bool checksum = true) {
  LZ4F_preferences_t preferences{};
  preferences.frameInfo.blockSizeID = LZ4F_max64KB;
  preferences.frameInfo.blockMode = independent ? LZ4F_blockIndependent : LZ4F_blockLinked;
  preferences.frameInfo.contentChecksumFlag =
      checksum ? LZ4F_contentChecksumEnabled : LZ4F_noContentChecksum;
  preferences.frameInfo.blockChecksumFlag =
      checksum ? LZ4F_blockChecksumEnabled : LZ4F_noBlockChecksum;
  preferences.frameInfo.contentSize = checksum ? bytes.size() : 0;
  ByteVector out(LZ4F_compressFrameBound(bytes.size(), &preferences));
  out.resize(LZ4F_compressFrame(out.data(), out.size(), bytes.data(), bytes.size(), &preferences));
  return out;
}

ByteVector gzip_member(std::span<const std::byte> bytes) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  ByteVector out(deflateBound(&stream, bytes.size()) + 64);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

struct Unpacked {
  OneChunkCache cache;
  std::vector<std::string> warnings;
  SourcePtr source;

  explicit Unpacked(const ByteVector& packed, UnpackOptions options = {}) {
    options.warn = [this](const std::string& text) { warnings.push_back(text); };
    source = open_unpacked(std::make_shared<MemorySource>("t.pack", packed), cache, options);
  }
  ByteVector read(std::uint64_t offset, std::size_t nbytes) const {
    ByteVector out(nbytes);
    source->read_at(offset, out);
    return out;
  }
};

void expect_holds(const ByteVector& packed, const ByteVector& plain) {
  const Unpacked unpacked(packed);
  ASSERT_EQ(unpacked.source->nbytes(), plain.size());
  EXPECT_TRUE(unpacked.read(0, plain.size()) == plain);
  std::mt19937 random(7);
  for (int i = 0; i < 30 && !plain.empty(); ++i) {
    const std::size_t offset = random() % plain.size();
    const std::size_t n = random() % std::min<std::size_t>(plain.size() - offset, 5000);
    ASSERT_TRUE(unpacked.read(offset, n) ==
                ByteVector(plain.begin() + static_cast<std::ptrdiff_t>(offset),
                           plain.begin() + static_cast<std::ptrdiff_t>(offset + n)))
        << offset << "+" << n;
  }
}

std::string refusal_of(const ByteVector& packed) {
  try {
    const Unpacked unpacked(packed);
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

struct Packer {
  const char* name;
  std::function<ByteVector(std::span<const std::byte>)> pack;
};

const std::vector<Packer>& packers() {
  static const std::vector<Packer> all = {
      {"gzip", gzip_member},
      {"zstd", [](std::span<const std::byte> b) { return zstd_frame(b); }},
      {"xz", [](std::span<const std::byte> b) { return xz_file(b, 100'000); }},
      {"bzip2", bzip2_stream},
      {"lz4", [](std::span<const std::byte> b) { return lz4_frame(b); }},
      {"lz4 of linked blocks", [](std::span<const std::byte> b) { return lz4_frame(b, false); }}};
  return all;
}

TEST(Unpack, OneStreamOfAnySize) {
  for (const Packer& packer : packers()) {
    SCOPED_TRACE(packer.name);
    for (const std::size_t nbytes : {1UL, 1000UL, 300'000UL, 1'500'000UL}) {
      const ByteVector plain = some_bytes(nbytes);
      expect_holds(packer.pack(plain), plain);
    }
  }
}

TEST(Unpack, SeveralStreamsPaddedWithZeroes) {
  for (const Packer& packer : packers()) {
    SCOPED_TRACE(packer.name);
    ByteVector plain;
    ByteVector packed;
    for (std::uint32_t i = 0; i < 7; ++i) {
      const ByteVector part = some_bytes(i * 150'000, i);
      plain = plain + part;
      packed = packed + packer.pack(part);
    }
    expect_holds(packed, plain);
    expect_holds(packed + ByteVector(512), plain);
  }
}

TEST(Unpack, SkippableFramesAreSkipped) {
  const ByteVector a = some_bytes(100'000, 1);
  const ByteVector b = some_bytes(400'000, 2);
  expect_holds(skippable_frame(20) + zstd_frame(a) + zstd_frame({}) + skippable_frame(0) +
                   zstd_frame(b) + skippable_frame(33),
               a + b);
  expect_holds(skippable_frame(20) + skippable_frame(0) + lz4_frame(a) + lz4_frame({}) +
                   skippable_frame(0) + lz4_frame(b, false) + skippable_frame(33) + lz4_frame(a),
               a + b + a);
  expect_holds(skippable_frame(3), {});
  // Nothing else has such frames.
  EXPECT_STREQ(find_packing(MemorySource("t", skippable_frame(9) + gzip_member(a)))->name, "zstd");
  EXPECT_STREQ(find_packing(MemorySource("t", skippable_frame(9) + lz4_frame(a)))->name, "lz4");
  ByteVector cut = skippable_frame(9) + lz4_frame(a);
  cut.resize(15);
  EXPECT_THAT(refusal_of(cut), HasSubstr("t.pack at byte 15"));
}

TEST(Unpack, IndependentBlocksOfAFrameAreEntered) {
  const ByteVector plain = some_bytes(8'000'000);
  for (const bool checksum : {true, false}) {
    const ByteVector frame = lz4_frame(plain, true, checksum);
    Unpacked unpacked(frame + frame);
    EXPECT_TRUE(unpacked.read(7'500'000, 10) ==
                ByteVector(plain.begin() + 7'500'000, plain.begin() + 7'500'010));
    EXPECT_EQ(unpacked.cache.decoded(), 1U);
    EXPECT_EQ(unpacked.cache.largest_nbytes(), 256U << 10);
    // The last blocks of a frame, and the first of the next.
    EXPECT_THAT(unpacked.source->access(), AllOf(HasSubstr("lz4"), HasSubstr("389 KiB")));
    // On from the last block of a frame into the next.
    EXPECT_TRUE(unpacked.read(7'999'990, 20) == ByteVector(plain.end() - 10, plain.end()) +
                                                    ByteVector(plain.begin(), plain.begin() + 10));
    expect_holds(frame + skippable_frame(5) + frame, plain + plain);
  }
  EXPECT_THAT(Unpacked(lz4_frame(plain, false)).source->access(), HasSubstr("7813 KiB"));
}

// A writer that flushes makes blocks of any size.
TEST(Unpack, BlocksOfAFrameMayBeShort) {
  LZ4F_cctx* context = nullptr;
  LZ4F_createCompressionContext(&context, LZ4F_VERSION);
  LZ4F_preferences_t preferences{};
  preferences.frameInfo.blockMode = LZ4F_blockIndependent;
  preferences.frameInfo.contentChecksumFlag = LZ4F_contentChecksumEnabled;
  ByteVector plain;
  ByteVector packed(std::size_t{4} << 20);
  std::size_t at = LZ4F_compressBegin(context, packed.data(), packed.size(), &preferences);
  for (std::uint32_t i = 0; i < 300; ++i) {
    const ByteVector part = some_bytes(i * 7 % 20'000 + i % 3, i);
    at += LZ4F_compressUpdate(context, packed.data() + at, packed.size() - at, part.data(),
                              part.size(), nullptr);
    at += LZ4F_flush(context, packed.data() + at, packed.size() - at, nullptr);
    plain = plain + part;
  }
  at += LZ4F_compressEnd(context, packed.data() + at, packed.size() - at, nullptr);
  LZ4F_freeCompressionContext(context);
  packed.resize(at);
  expect_holds(packed + packed, plain + plain);
}

TEST(Unpack, EveryByteOfAnLz4FrameCounts) {
  const ByteVector plain = some_bytes(200'000);
  const ByteVector packed = lz4_frame(plain);
  for (std::size_t at = 4; at < packed.size(); at += at < 40 || at + 40 > packed.size() ? 1 : 997) {
    ByteVector changed = packed;
    changed.resize(at);
    EXPECT_THAT(refusal_of(changed), HasSubstr("t.pack at byte ")) << at;
    changed = packed;
    changed[at] ^= std::byte{0x10};
    EXPECT_THAT(refusal_of(changed), HasSubstr("t.pack at byte ")) << at;
  }
}

// Of a descriptor with another bit, and of `lz4 -l`.
TEST(Unpack, KindsOfLz4ThatAreNotRead) {
  LZ4F_cctx* context = nullptr;
  LZ4F_createCompressionContext(&context, LZ4F_VERSION);
  LZ4F_preferences_t preferences{};
  preferences.frameInfo.dictID = 7;
  ByteVector packed(100);
  packed.resize(LZ4F_compressBegin(context, packed.data(), packed.size(), &preferences));
  LZ4F_freeCompressionContext(context);
  EXPECT_THAT(refusal_of(packed + ByteVector(4)), HasSubstr("dictionary"));
  UnpackOptions options;
  options.permissive = true;
  EXPECT_THROW(Unpacked(lz4_frame(some_bytes(10)) + packed + ByteVector(4), options), Error);
  const unsigned char legacy[] = {0x02, 0x21, 0x4c, 0x18, 0x02, 0x00, 0x00, 0x00, 0x10, 'a'};
  const auto bytes = std::as_bytes(std::span(legacy));
  EXPECT_THAT(refusal_of(ByteVector(bytes.begin(), bytes.end())),
              AllOf(HasSubstr("t.pack at byte 0"), HasSubstr("legacy")));
}

TEST(Unpack, AFrameIsDecodedWithoutThoseBeforeIt) {
  ByteVector packed;
  for (std::uint32_t i = 0; i < 8; ++i) {
    packed = packed + zstd_frame(some_bytes(1'000'000, i));
  }
  Unpacked unpacked(packed);
  unpacked.read(7'500'000, 10);
  EXPECT_EQ(unpacked.cache.decoded(), 1U);
  EXPECT_EQ(unpacked.cache.largest_nbytes(), 1'000'000U);
  EXPECT_TRUE(unpacked.warnings.empty());
  EXPECT_THAT(unpacked.source->access(), AllOf(HasSubstr("zstd"), HasSubstr("977 KiB")));
}

TEST(Unpack, WhatAReadCostsIsSaidOnce) {
  UnpackOptions options;
  options.pool->cache_nbytes = 8 << 20;
  const ByteVector packed = zstd_frame(some_bytes(3 << 20));
  const Unpacked first(packed, options);
  EXPECT_THAT(first.warnings,
              ::testing::ElementsAre(AllOf(HasSubstr("t.pack"), HasSubstr("--cache-dir"),
                                           HasSubstr("3072 KiB"), HasSubstr("1536 KiB"))));
  const Unpacked second(packed, options);
  EXPECT_TRUE(second.warnings.empty());
  EXPECT_LE(second.cache.largest_nbytes(), 1U << 20);
}

class CountingSource : public ByteSource {
 public:
  explicit CountingSource(const ByteVector& bytes)
      : ByteSource("t.pack", bytes.size(), 0), bytes_(bytes) {}
  std::uint64_t read_nbytes() const { return read_nbytes_; }

 private:
  void do_read(std::uint64_t offset, std::span<std::byte> out) const override {
    read_nbytes_ += out.size();
    std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(offset), out.size(), out.begin());
  }
  const ByteVector& bytes_;
  mutable std::atomic<std::uint64_t> read_nbytes_{0};
};

TEST(Unpack, ReadingOnDecodesALargeFrameOnce) {
  const ByteVector plain = some_bytes(5 << 20);
  for (const bool bzip2 : {false, true}) {
    const ByteVector packed = bzip2 ? bzip2_stream(plain) : zstd_frame(plain);
    const auto base = std::make_shared<CountingSource>(packed);
    OneChunkCache cache;
    const SourcePtr source = open_unpacked(base, cache, {});
    const std::uint64_t scanned = base->read_nbytes();
    ByteVector read(plain.size());
    for (std::size_t at = 0; at < read.size(); at += 64 << 10) {
      source->read_at(at, std::span(read).subspan(at, 64 << 10));
    }
    EXPECT_TRUE(read == plain);
    EXPECT_EQ(cache.decoded(), 5U);
    EXPECT_LT(base->read_nbytes() - scanned, packed.size() + (1U << 19));
    // Backwards, and another source in between.
    const Unpacked other(zstd_frame(some_bytes(3 << 20, 2)));
    for (std::size_t at = read.size() - 100; at > 100; at = at / 2) {
      std::array<std::byte, 100> out{};
      source->read_at(at, out);
      ASSERT_TRUE(
          std::equal(out.begin(), out.end(), plain.begin() + static_cast<std::ptrdiff_t>(at)))
          << at;
      ASSERT_TRUE(other.read((2 << 20) + at % 1000, 1) ==
                  ByteVector(1, some_bytes(3 << 20, 2)[(2 << 20) + at % 1000]));
    }
  }
}

// A shard of one frame that is read with others.
struct CountedShard {
  ByteVector plain;
  ByteVector packed;
  std::shared_ptr<CountingSource> base;
  OneChunkCache cache;
  SourcePtr source;
  std::uint64_t scanned = 0;

  CountedShard(ByteVector bytes, ByteVector frame, const UnpackOptions& options)
      : plain(std::move(bytes)),
        packed(std::move(frame)),
        base(std::make_shared<CountingSource>(packed)),
        source(open_unpacked(base, cache, options)),
        scanned(base->read_nbytes()) {}
  std::uint64_t read_nbytes() const { return base->read_nbytes() - scanned; }
};

TEST(Unpack, ReadersOfSeveralShardsGoOnWhereTheyWere) {
  const ByteVector plain = some_bytes(16 << 20);
  UnpackOptions options;
  options.pool->cache_nbytes = std::uint64_t{64}
                               << 20;  // chunks of 8 MiB, and as much for decoders
  std::vector<std::unique_ptr<CountedShard>> shards;
  shards.push_back(std::make_unique<CountedShard>(plain, zstd_frame(plain), options));
  shards.push_back(std::make_unique<CountedShard>(plain, bzip2_stream(plain), options));
  for (std::size_t at = 0; at < plain.size(); at += 4 << 20) {
    for (const auto& shard : shards) {
      ByteVector part(4 << 20);
      shard->source->read_at(at, part);
      ASSERT_TRUE(
          std::equal(part.begin(), part.end(), plain.begin() + static_cast<std::ptrdiff_t>(at)));
    }
  }
  for (const auto& shard : shards) {
    EXPECT_LT(shard->read_nbytes(), shard->packed.size() + (1U << 20));
  }
}

TEST(Unpack, DecodersThatWaitTakeNoMoreThanIsAllowed) {
  UnpackOptions options;
  options.pool->cache_nbytes = std::uint64_t{8} << 20;  // chunks of 1 MiB, and as much for decoders
  const ByteVector plain = some_bytes(3 << 20);
  std::vector<std::unique_ptr<CountedShard>> shards;
  std::uint64_t one = 0;
  for (int i = 0; i < 50; ++i) {
    shards.push_back(std::make_unique<CountedShard>(plain, zstd_frame(plain), options));
    std::byte byte{};
    shards.back()->source->read_at(1 << 20, {&byte, 1});
    one = one == 0 ? options.pool->paused->nbytes() : one;
    EXPECT_GT(one, std::uint64_t{1} << 20);  // of which one is kept nevertheless
    EXPECT_LE(options.pool->paused->nbytes(), one + (1U << 16));
  }
  shards.clear();
  EXPECT_EQ(options.pool->paused->nbytes(), 0U);
}

TEST(PausedDecoders, TheOldestGoFirst) {
  const MemorySource base("t.zst", zstd_frame(some_bytes(100)));
  PausedDecoders kept;
  const auto put = [&](std::uint64_t serial, std::uint64_t most_nbytes) {
    auto decoder = std::make_unique<PausedDecoder>(base, *find_packing(base), serial);
    decoder->nbytes = 10;
    kept.put(std::move(decoder), most_nbytes);
  };
  for (std::uint64_t serial = 1; serial <= 3; ++serial) {
    put(serial, 30);
  }
  put(1, 30);  // in place of itself
  EXPECT_EQ(kept.nbytes(), 30U);
  put(4, 30);
  EXPECT_EQ(kept.take(2), nullptr);
  for (const std::uint64_t serial : {1, 3, 4}) {
    const auto decoder = kept.take(serial);
    ASSERT_NE(decoder, nullptr) << serial;
    EXPECT_EQ(decoder->serial, serial);
    EXPECT_EQ(kept.take(serial), nullptr);
  }
  EXPECT_EQ(kept.nbytes(), 0U);
  for (std::uint64_t serial = 1; serial <= 100; ++serial) {
    put(serial, 5);
    EXPECT_EQ(kept.nbytes(), 10U);
  }
  EXPECT_NE(kept.take(100), nullptr);
}

// Decodes for every read. Any thread.
class NoCache : public ChunkCache {
 public:
  std::shared_ptr<const Block> get(const ChunkSource& chunks, std::uint64_t chunk) override {
    OneChunkCache once;
    return once.get(chunks, chunk);
  }
};

TEST(Unpack, ThreadsReadTheSameBytes) {
  const ByteVector plain = some_bytes(5 << 20);
  NoCache cache;
  const SourcePtr source =
      open_unpacked(std::make_shared<MemorySource>("t", zstd_frame(plain)), cache, {});
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (std::uint32_t seed = 0; seed < 4; ++seed) {
    threads.emplace_back([&, seed] {
      std::mt19937 random(seed);
      for (int i = 0; i < 40; ++i) {
        const std::size_t at = random() % (plain.size() - 1000);
        ByteVector out(1000);
        source->read_at(at, out);
        wrong += std::equal(out.begin(), out.end(), plain.begin() + static_cast<std::ptrdiff_t>(at))
                     ? 0
                     : 1;
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(wrong, 0);
}

// Of all files without a name that this process has open in `folder`.
std::uint64_t spooled_nbytes(const std::string& folder) {
  std::uint64_t nbytes = 0;
  for (const auto& fd : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    const std::string path = std::filesystem::read_symlink(fd, gone).string();
    struct stat status {};
    if (path.starts_with(folder) && ::stat(fd.path().c_str(), &status) == 0) {
      nbytes += static_cast<std::uint64_t>(status.st_size);
    }
  }
  return nbytes;
}

TEST(Unpack, WhatIsNotFinishedTakesNoRoomInTheSpool) {
  const std::string folder = ::testing::TempDir() + "npyfs-unpack-spool";
  UnpackOptions options;
  options.permissive = true;
  options.pool->spool = Spool::create(folder);
  for (const Packer& packer : packers()) {
    const ByteVector good = packer.pack(some_bytes(3'000'000));
    ByteVector bad = packer.pack(some_bytes(3'000'000));
    bad[bad.size() / 2] ^= std::byte{0x10};
    const std::uint64_t before = spooled_nbytes(folder);
    const Unpacked damaged(good + bad, options);
    EXPECT_EQ(spooled_nbytes(folder), before) << packer.name;
    const Unpacked whole(good, options);
    EXPECT_EQ(spooled_nbytes(folder), before + 3'000'000) << packer.name;
    EXPECT_TRUE(whole.read(0, 3'000'000) == some_bytes(3'000'000)) << packer.name;
  }
  options.pool->spool = nullptr;
  std::filesystem::remove_all(folder);
}

TEST(Unpack, EveryTruncationIsFound) {
  for (const Packer& packer : packers()) {
    const ByteVector packed = packer.pack(some_bytes(2000));
    for (std::size_t n = 6; n < packed.size(); ++n) {
      const ByteVector cut(packed.begin(), packed.begin() + static_cast<std::ptrdiff_t>(n));
      ASSERT_THAT(refusal_of(cut), HasSubstr("t.pack at byte")) << packer.name << " " << n;
    }
  }
}

TEST(Unpack, NoFlippedBitGivesOtherBytes) {
  const ByteVector plain = some_bytes(2000);
  for (const Packer& packer : packers()) {
    const ByteVector packed = packer.pack(plain);
    for (std::size_t i = 4; i < packed.size(); ++i) {
      ByteVector flipped = packed;
      flipped[i] ^= std::byte{0x10};
      try {
        const Unpacked unpacked(flipped);
        ASSERT_TRUE(unpacked.source->nbytes() == plain.size() &&
                    unpacked.read(0, plain.size()) == plain)
            << packer.name << " " << i;
      } catch (const Error& error) {
        ASSERT_THAT(error.what(), HasSubstr("t.pack")) << packer.name << " " << i;
      }
    }
  }
}

// A number in an xz index, three bytes long.
std::string varint(std::uint32_t number) {
  return {static_cast<char>(number | 0x80), static_cast<char>(number >> 7 | 0x80),
          static_cast<char>(number >> 14)};
}

// The sum is right, and so is where the last block ends.
TEST(Unpack, AnXzIndexThatMovesABlockIsFound) {
  const ByteVector packed = xz_file(some_bytes(250'000), 100'000);
  std::string text(reinterpret_cast<const char*>(packed.data()), packed.size());
  std::uint32_t backward = 0;
  std::memcpy(&backward, &text[text.size() - 8], sizeof backward);
  const std::size_t index = text.size() - 12 - (std::size_t{backward} + 1) * 4;
  const std::size_t first = text.find(varint(100'000), index);
  const std::size_t second = text.find(varint(100'000), first + 3);
  ASSERT_NE(second, std::string::npos);
  text.replace(first, 3, varint(90'000));
  text.replace(second, 3, varint(110'000));
  const std::size_t nbytes = text.size() - 12 - 4 - index;
  const std::uint32_t crc =
      lzma_crc32(reinterpret_cast<const std::uint8_t*>(&text[index]), nbytes, 0);
  std::memcpy(&text[index + nbytes], &crc, sizeof crc);
  const auto bytes = std::as_bytes(std::span(text));
  EXPECT_THAT(refusal_of(ByteVector(bytes.begin(), bytes.end())),
              AllOf(HasSubstr("t.pack at byte"), HasSubstr("90000"), HasSubstr("100000")));
}

TEST(Unpack, WhatFollowsTheStreamIsNoData) {
  for (const Packer& packer : packers()) {
    const ByteVector plain = some_bytes(1000);
    EXPECT_NE(refusal_of(packer.pack(plain) + ByteVector(40, std::byte{'x'})), "") << packer.name;
  }
}

TEST(Unpack, PermissiveOffersTheFramesBeforeADamage) {
  const ByteVector a = some_bytes(500'000, 1);
  const ByteVector b = some_bytes(500'000, 2);
  for (const Packer& packer : packers()) {
    ByteVector packed = packer.pack(a);
    ByteVector damaged = packer.pack(b);
    damaged[damaged.size() / 2] ^= std::byte{0x10};
    UnpackOptions options;
    options.permissive = true;
    const Unpacked unpacked(packed + damaged, options);
    EXPECT_GE(unpacked.source->nbytes(), a.size()) << packer.name;
    EXPECT_LT(unpacked.source->nbytes(), a.size() + b.size()) << packer.name;
    EXPECT_TRUE(unpacked.read(0, a.size()) == a) << packer.name;
    EXPECT_EQ(unpacked.warnings.size(), 1U) << packer.name;
  }
}

// 2 GiB of window, as zstd --ultra --long=31 asks for.
TEST(Unpack, AFrameMayNotAskForAllMemory) {
  const unsigned char head[] = {0x28, 0xb5, 0x2f, 0xfd, 0x00, 0xa8, 0x01, 0x00, 0x00};
  const auto bytes = std::as_bytes(std::span(head));
  EXPECT_THAT(refusal_of(ByteVector(bytes.begin(), bytes.end())), HasSubstr("128 MiB"));
}

TEST(UnpackHead, IsTheBeginningOfAnyPacking) {
  const ByteVector plain = some_bytes(100'000);
  const ByteVector begin(plain.begin(), plain.begin() + 512);
  for (const Packer& packer : packers()) {
    const MemorySource source("t", packer.pack(plain));
    const Packing* packing = find_packing(source);
    ASSERT_NE(packing, nullptr) << packer.name;
    EXPECT_THAT(packer.name, StartsWith(packing->name));
    EXPECT_TRUE(unpack_head(source, 512) == begin) << packer.name;
  }
  EXPECT_TRUE(unpack_head(MemorySource("t", plain), 512).empty());
  EXPECT_TRUE(unpack_head(MemorySource("t", {}), 512).empty());
}

}  // namespace
}  // namespace npyfs
