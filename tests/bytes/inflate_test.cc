// SPDX-License-Identifier: Apache-2.0

#include "formats/bytes/inflate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "formats/bytes/error.h"
#include "tests/support/one_chunk_cache.h"

namespace npyfs {
namespace {

using ::testing::HasSubstr;
using testing::OneChunkCache;
using ByteVector = std::vector<std::byte>;

constexpr int kGzip = 15 + 16;
constexpr int kZlib = 15;

ByteVector deflated(std::span<const std::byte> bytes, int window_bits, int level = 6) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, level, Z_DEFLATED, window_bits, 8, Z_DEFAULT_STRATEGY), Z_OK);
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

// Half compressible: words out of a small vocabulary, random bytes between.
ByteVector sample(std::size_t nbytes, unsigned seed) {
  std::mt19937 random(seed);
  ByteVector bytes;
  while (bytes.size() < nbytes) {
    const bool word = random() % 2 == 0;
    const std::byte letter{static_cast<unsigned char>(random() % 26 + 'a')};
    for (unsigned i = 0; i < 12; ++i) {
      bytes.push_back(word ? letter : std::byte{static_cast<unsigned char>(random())});
    }
  }
  bytes.resize(nbytes);
  return bytes;
}

void append(ByteVector& to, const ByteVector& bytes) {
  to.insert(to.end(), bytes.begin(), bytes.end());
}

SourcePtr memory(ByteVector bytes) {
  return std::make_shared<MemorySource>("a.gz", std::move(bytes));
}

ByteVector read(const ByteSource& source, std::uint64_t offset, std::size_t nbytes) {
  ByteVector out(nbytes);
  source.read_at(offset, out);
  return out;
}

// Random slices, edges and the whole equal `bytes`.
void expect_equal(const ByteSource& source, const ByteVector& bytes, unsigned seed) {
  ASSERT_EQ(source.nbytes(), bytes.size());
  std::mt19937 random(seed);
  for (int i = 0; i < 60; ++i) {
    const std::size_t offset = random() % bytes.size();
    const std::size_t nbytes = std::min<std::size_t>(random() % 5000, bytes.size() - offset);
    const ByteVector got = read(source, offset, nbytes);
    ASSERT_TRUE(std::equal(got.begin(), got.end(), bytes.begin() + static_cast<long>(offset)))
        << "offset " << offset << " nbytes " << nbytes << " seed " << seed;
  }
  EXPECT_EQ(read(source, 0, bytes.size()), bytes);
}

// Ample memory for points, so that small streams have some.
InflateOptions with_span(std::uint64_t span_nbytes) {
  InflateOptions options;
  options.span_nbytes = span_nbytes;
  options.budget_nbytes_per_gib = std::uint64_t{1} << 36;
  return options;
}

InflateOptions small_span() { return with_span(20000); }

std::string what_of(const ByteVector& stream, const InflateOptions& options = small_span()) {
  OneChunkCache cache;
  try {
    open_inflated(memory(stream), cache, options);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kCorrupt);
    return error.what();
  }
  return "";
}

TEST(Inflate, ManyMembersAndPaddingAreOneSource) {
  ByteVector whole;
  ByteVector stream;
  for (const std::size_t nbytes : {0U, 70000U, 1U, 0U, 300000U, 19999U, 20001U}) {
    const ByteVector part = sample(nbytes, static_cast<unsigned>(nbytes));
    append(whole, part);
    append(stream, deflated(part, kGzip));
  }
  stream.resize(stream.size() + 513);
  OneChunkCache cache;
  const auto source = open_inflated(memory(stream), cache, small_span());
  expect_equal(*source, whole, 1);
}

TEST(Inflate, ZlibAndEveryLevelAreRead) {
  const ByteVector whole = sample(500000, 7);
  for (const int level : {0, 1, 6, 9}) {
    OneChunkCache cache;
    expect_equal(*open_inflated(memory(deflated(whole, kZlib, level)), cache, small_span()), whole,
                 static_cast<unsigned>(level));
  }
}

TEST(Inflate, SpanDoublesWithinTheBudget) {
  const ByteVector whole = sample(3000000, 9);
  InflateOptions options = with_span(1000);  // 3000 windows of some 20 KiB
  options.budget_nbytes = 200000;
  OneChunkCache cache;
  const auto source = open_inflated(memory(deflated(whole, kGzip)), cache, options);
  expect_equal(*source, whole, 3);
}

TEST(Inflate, ChunksStaySmallWherePointsAreFew) {
  const ByteVector whole = sample(3000000, 9);
  InflateOptions options = with_span(1000);
  options.budget_nbytes = 200000;  // some ten points: the span is 256000 or more
  options.chunk_nbytes = 40000;
  OneChunkCache cache;
  const auto source = open_inflated(memory(deflated(whole, kGzip)), cache, options);
  expect_equal(*source, whole, 3);
  EXPECT_EQ(cache.largest_nbytes(), 32000U);
}

// Memory that counts what is read of it.
class CountingSource : public ByteSource {
 public:
  explicit CountingSource(ByteVector bytes)
      : ByteSource("c.gz", bytes.size(), 0), bytes_(std::move(bytes)) {}
  mutable std::uint64_t read_nbytes = 0;

 private:
  void do_read(std::uint64_t offset, std::span<std::byte> out) const override {
    read_nbytes += out.size();
    std::memcpy(out.data(), bytes_.data() + offset, out.size());
  }

  ByteVector bytes_;
};

std::uint64_t allocated_nbytes() {
  const auto info = ::mallinfo2();
  return info.uordblks + info.hblkhd;
}

// The shards of a data set: what each keeps is in proportion to what it decodes to, and no read
// inflates much for nothing. Random bytes are the worst: their windows do not deflate.
TEST(Inflate, TheFilesOfADataSetShareOneBudget) {
  constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
  constexpr std::uint64_t kShards = 12;
  ByteVector whole(17 * kMiB);
  std::mt19937 random(12);
  std::generate(whole.begin(), whole.end(),
                [&] { return std::byte{static_cast<unsigned char>(random())}; });
  const auto base = std::make_shared<CountingSource>(deflated(whole, kGzip, 1));
  OneChunkCache cache;
  const std::uint64_t before = allocated_nbytes();
  std::vector<SourcePtr> shards;
  for (std::uint64_t i = 0; i < kShards; ++i) {
    shards.push_back(open_inflated(base, cache, {}));
  }
  const std::uint64_t kept = allocated_nbytes() - before;
  EXPECT_LT(kept, kShards * whole.size() / 240);

  base->read_nbytes = 0;
  EXPECT_EQ(read(*shards[3], 16 * kMiB - 1, 1)[0], whole[16 * kMiB - 1]);
  EXPECT_LT(base->read_nbytes, 9 * kMiB);
  EXPECT_LE(cache.largest_nbytes(), 4 * kMiB);
}

TEST(Inflate, BlocksLongerThanTheSpanShareTheirPoint) {
  ByteVector whole(1000000, std::byte{'z'});
  whole[500000] = std::byte{'y'};
  const InflateOptions options = with_span(10000);
  OneChunkCache cache;
  expect_equal(*open_inflated(memory(deflated(whole, kGzip)), cache, options), whole, 4);
}

TEST(Inflate, EmptyContentHasNoBytes) {
  OneChunkCache cache;
  EXPECT_EQ(open_inflated(memory(deflated({}, kGzip)), cache, {})->nbytes(), 0U);
}

TEST(Inflate, DamageIsNamedWithFileAndOffset) {
  const ByteVector good = deflated(sample(100000, 5), kGzip);
  ByteVector bad = good;
  bad[bad.size() - 6] ^= std::byte{1};  // in the CRC
  EXPECT_THAT(what_of(bad), HasSubstr("a.gz at byte"));
  EXPECT_THAT(what_of(bad), HasSubstr("incorrect data check"));
  bad = good;
  bad[bad.size() - 2] ^= std::byte{1};  // in ISIZE
  EXPECT_THAT(what_of(bad), HasSubstr("incorrect length check"));
  bad = good;
  bad.push_back(std::byte{0});
  bad.push_back(std::byte{'?'});
  EXPECT_THAT(what_of(bad), HasSubstr("a.gz at byte " + std::to_string(good.size() + 1)));
}

TEST(Inflate, EveryFlippedBitIsFoundOrHarmless) {
  const ByteVector whole = sample(600, 6);
  for (const int window_bits : {kGzip, kZlib}) {
    const ByteVector good = deflated(whole, window_bits);
    for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
      ByteVector bad = good;
      bad[bit / 8] ^= std::byte{1} << (bit % 8);
      OneChunkCache cache;
      try {
        const auto source = open_inflated(memory(bad), cache, small_span());
        EXPECT_EQ(read(*source, 0, source->nbytes()), whole) << "bit " << bit;
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::kCorrupt);
      }
    }
  }
}

TEST(Inflate, ACutIsRefusedOrItsGoodPartIsShown) {
  const ByteVector whole = sample(200000, 8);
  const ByteVector good = deflated(whole, kGzip);
  for (std::size_t nbytes = 0; nbytes < good.size(); nbytes += nbytes < 40 ? 1 : 9973) {
    const ByteVector cut(good.begin(), good.begin() + static_cast<long>(nbytes));
    EXPECT_THAT(what_of(cut), HasSubstr("a.gz at byte")) << nbytes;
  }
  const ByteVector cut(good.begin(), good.begin() + static_cast<long>(good.size() / 2));
  EXPECT_THAT(what_of(cut), HasSubstr("cut short"));

  InflateOptions options = small_span();
  options.permissive = true;
  std::string warning;
  options.warn = [&](const std::string& text) { warning = text; };
  OneChunkCache cache;
  const auto source = open_inflated(memory(cut), cache, options);
  EXPECT_THAT(warning, HasSubstr("cut short"));
  ASSERT_GT(source->nbytes(), whole.size() / 3);
  expect_equal(*source,
               ByteVector(whole.begin(), whole.begin() + static_cast<long>(source->nbytes())), 2);
}

TEST(Inflate, PermissiveShowsOnlyVouchedMembersOfUncheckedContent) {
  const ByteVector first = sample(50000, 1);
  const ByteVector second = sample(60000, 2);
  ByteVector stream = deflated(first, kGzip);
  append(stream, deflated(second, kGzip));
  stream[stream.size() - 6] ^= std::byte{1};
  InflateOptions options = small_span();
  options.permissive = true;
  OneChunkCache cache;
  expect_equal(*open_inflated(memory(stream), cache, options), first, 1);
  options.content_is_checked = true;
  ByteVector both = first;
  append(both, second);
  OneChunkCache other_cache;
  expect_equal(*open_inflated(memory(stream), other_cache, options), both, 1);
}

TEST(Inflate, HeadIsWhatTheStreamBeginsWith) {
  const ByteVector whole = sample(1000, 3);
  ByteVector stream = deflated({}, kGzip);
  append(stream, deflated(whole, kGzip));
  EXPECT_EQ(inflate_head(*memory(stream), 16), ByteVector(whole.begin(), whole.begin() + 16));
  EXPECT_EQ(inflate_head(*memory(deflated(whole, kZlib)), 2000), whole);
  EXPECT_TRUE(inflate_head(*memory(whole), 16).empty());
  EXPECT_TRUE(inflate_head(*memory({}), 16).empty());
}

TEST(Inflate, RandomDamageNeverCrashes) {
  const ByteVector whole = sample(30000, 4);
  ByteVector good = deflated(ByteVector(whole.begin(), whole.begin() + 10000), kGzip);
  append(good, deflated(ByteVector(whole.begin() + 10000, whole.end()), kGzip));
  std::mt19937 random(11);
  for (int round = 0; round < 300; ++round) {
    ByteVector bad = good;
    for (unsigned n = random() % 4; n > 0; --n) {
      bad[random() % bad.size()] = std::byte{static_cast<unsigned char>(random())};
    }
    bad.resize(random() % 2 == 0 ? bad.size() : random() % bad.size());
    InflateOptions options = small_span();
    options.span_nbytes = 500;
    options.permissive = options.content_is_checked = true;
    OneChunkCache cache;
    try {
      const auto source = open_inflated(memory(bad), cache, options);
      ASSERT_LE(source->nbytes(), std::uint64_t{40} << 20);
      read(*source, source->nbytes() / 2, source->nbytes() - source->nbytes() / 2);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kCorrupt) << error.what();
    }
  }
}

}  // namespace
}  // namespace npyfs
