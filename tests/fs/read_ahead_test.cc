// SPDX-License-Identifier: Apache-2.0
//
// What is decoded ahead of which reader.

#include "fs/read_ahead.h"

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <set>

#include "formats/arrays/array.h"
#include "formats/bytes/error.h"
#include "fs/verified_records.h"

namespace npyfs {
namespace {

constexpr std::uint64_t kChunk = 64 << 10;

// Bytes in equal chunks; says which have been decoded.
class ChunkedBytes : public Array, public ChunkSource {
 public:
  ChunkedBytes(std::uint64_t chunks, std::uint64_t chunk_nbytes, std::set<std::uint64_t> failing)
      : Array(DType::simple("|u1"), {chunks * chunk_nbytes}),
        chunk_nbytes_(chunk_nbytes),
        failing_(std::move(failing)) {}

  std::string storage() const override { return "decoded"; }
  void plan(ByteRange range, Plan& plan) const override {
    while (!range.empty() && !plan.full()) {
      const std::uint64_t chunk = range.begin / chunk_nbytes_;
      const std::uint64_t end = std::min(range.end, (chunk + 1) * chunk_nbytes_);
      plan.add_chunk(*this, chunk, range.begin % chunk_nbytes_, end - range.begin);
      range.begin = end;
    }
  }
  std::uint64_t chunk_nbytes(std::uint64_t /*chunk*/) const override { return chunk_nbytes_; }
  void decode(std::uint64_t chunk, std::span<std::byte> out,
              DecodeContext& /*context*/) const override {
    std::fill(out.begin(), out.end(), static_cast<std::byte>(chunk));
    {
      const std::lock_guard lock(mutex_);
      decoded_.insert(chunk);
    }
    changed_.notify_all();
    if (failing_.contains(chunk)) {
      throw Error(ErrorKind::kCorrupt, "bad");
    }
  }

  // Whether it comes to be decoded at all.
  bool wait_for(std::uint64_t chunk) const {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(60),
                             [&] { return decoded_.contains(chunk); });
  }
  std::set<std::uint64_t> decoded() const {
    const std::lock_guard lock(mutex_);
    return decoded_;
  }

 private:
  std::uint64_t chunk_nbytes_;
  std::set<std::uint64_t> failing_;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  mutable std::set<std::uint64_t> decoded_;
};

class ReadAheadTest : public ::testing::Test {
 protected:
  struct File {
    File(std::uint64_t chunks, std::uint64_t chunk_nbytes, std::set<std::uint64_t> failing)
        : bytes(std::make_shared<ChunkedBytes>(chunks, chunk_nbytes, std::move(failing))),
          npy({.name = "x", .array = bytes, .format = "fake", .sources = {}}, 64) {}
    std::shared_ptr<const ChunkedBytes> bytes;
    NpyFile npy;
  };

  // Lives as long as the thread may look at it.
  const File& make_file(std::uint64_t chunks, std::uint64_t chunk_nbytes = kChunk,
                        std::set<std::uint64_t> failing = {}) {
    files_.push_back(std::make_unique<File>(chunks, chunk_nbytes, std::move(failing)));
    return *files_.back();
  }
  // Reads [begin, end) of the file in order, in requests like the kernel's.
  void read_in_order(const File& file, std::uint64_t begin, std::uint64_t end) {
    constexpr std::uint64_t kRequest = 128 << 10;
    for (; begin < end; begin += kRequest) {
      ahead_.note_read(file.npy, {begin, std::min(begin + kRequest, end)});
    }
  }
  // There is one thread: what was to be decoded before has been.
  void finish_earlier() {
    const File& other = make_file(64);
    read_in_order(other, 0, 2 << 20);
    ASSERT_TRUE(other.bytes->wait_for(40));
  }

  std::vector<std::unique_ptr<File>> files_;
  VerifiedRecords verified_{Verify::kRead};
  BlockCache cache_{std::uint64_t{256} << 20, verified_};
  ReadAhead ahead_{cache_, 1};
};

TEST_F(ReadAheadTest, DecodesAheadOfAReaderInOrder) {
  const File& file = make_file(100);
  read_in_order(file, 0, 2 << 20);
  EXPECT_TRUE(file.bytes->wait_for(40));
  read_in_order(file, 2 << 20, 4 << 20);
  EXPECT_TRUE(file.bytes->wait_for(99));
  // What it has read itself is not decoded for it again.
  EXPECT_FALSE(file.bytes->decoded().contains(0));
}

TEST_F(ReadAheadTest, LetsRequestsComeOutOfOrder) {
  const File& file = make_file(100);
  for (std::uint64_t pair = 0; pair < 8; ++pair) {
    const std::uint64_t begin = pair * (256 << 10);
    ahead_.note_read(file.npy, {begin + (128 << 10), begin + (256 << 10)});
    ahead_.note_read(file.npy, {begin, begin + (128 << 10)});
  }
  EXPECT_TRUE(file.bytes->wait_for(40));
}

TEST_F(ReadAheadTest, FollowsSeveralReadersOfAFile) {
  const File& file = make_file(200);
  for (std::uint64_t at = 0; at < 1 << 20; at += 128 << 10) {
    for (const std::uint64_t begin : {std::uint64_t{0}, std::uint64_t{100} * kChunk}) {
      ahead_.note_read(file.npy, {begin + at, begin + at + (128 << 10)});
    }
  }
  EXPECT_TRUE(file.bytes->wait_for(20));
  EXPECT_TRUE(file.bytes->wait_for(120));
}

TEST_F(ReadAheadTest, LeavesRandomWindowsAlone) {
  const File& file = make_file(10'000);
  for (std::uint64_t i = 0; i < 200; ++i) {
    const std::uint64_t begin = i * 7919 % 4900 * 2 * kChunk;
    read_in_order(file, begin, begin + (384 << 10));
  }
  finish_earlier();
  EXPECT_EQ(file.bytes->decoded(), std::set<std::uint64_t>());
}

TEST_F(ReadAheadTest, EndsWithTheFile) {
  const File& file = make_file(20);
  read_in_order(file, 0, 20 * kChunk);
  read_in_order(file, 20 * kChunk, 20 * kChunk + 64);
  finish_earlier();
  const auto decoded = file.bytes->decoded();
  EXPECT_TRUE(decoded.empty() || *decoded.rbegin() == 19U);
}

TEST_F(ReadAheadTest, GoesOnBehindWhatCannotBeDecoded) {
  const File& file = make_file(100, kChunk, {20});
  read_in_order(file, 0, 2 << 20);
  EXPECT_TRUE(file.bytes->wait_for(50));
}

TEST_F(ReadAheadTest, LeavesLargeChunksToTheirReader) {
  // A sixteenth of the cache each; what is ahead of the reader crosses into the second.
  const File& file = make_file(4, 16 << 20);
  read_in_order(file, 12 << 20, 15 << 20);
  finish_earlier();
  EXPECT_EQ(file.bytes->decoded(), std::set<std::uint64_t>());
}

}  // namespace
}  // namespace npyfs
