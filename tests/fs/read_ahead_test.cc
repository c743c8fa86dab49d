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
#include "fs/fetch.h"
#include "fs/npy_file.h"
#include "fs/verified_records.h"

namespace npyfs {
namespace {

constexpr std::uint64_t kChunk = 64 << 10;

// Bytes in equal chunks, a stripe from one after the other; says which have been decoded.
class ChunkedBytes : public Array, public ChunkSource {
 public:
  ChunkedBytes(std::uint64_t chunks, std::uint64_t chunk_nbytes, std::set<std::uint64_t> failing,
               std::uint64_t stripe)
      : Array(DType::simple("|u1"), {chunks * chunk_nbytes}),
        chunks_(chunks),
        chunk_nbytes_(chunk_nbytes),
        stripe_(stripe),
        failing_(std::move(failing)) {}

  std::string storage() const override { return "decoded"; }
  void plan(ByteRange range, Plan& plan) const override {
    while (!range.empty() && !plan.full()) {
      const std::uint64_t stripe = range.begin / stripe_;
      const std::uint64_t end = std::min(range.end, (stripe + 1) * stripe_);
      plan.add_chunk(*this, stripe % chunks_, stripe / chunks_ * stripe_ + range.begin % stripe_,
                     end - range.begin);
      range.begin = end;
    }
  }
  std::uint64_t chunk_nbytes(std::uint64_t /*chunk*/) const override { return chunk_nbytes_; }
  void decode(std::uint64_t chunk, std::span<std::byte> out,
              DecodeContext& /*context*/) const override {
    const std::lock_guard go_on(gate_);
    std::fill(out.begin(), out.end(), static_cast<std::byte>(chunk));
    {
      const std::lock_guard lock(mutex_);
      decoded_.insert(chunk);
      ++decodes_;
    }
    changed_.notify_all();
    if (failing_.contains(chunk)) {
      throw Error(ErrorKind::kCorrupt, "bad");
    }
  }

  // Nothing is decoded while the caller holds this.
  std::unique_lock<std::mutex> hold() const { return std::unique_lock(gate_); }
  // Whether it comes to be decoded at all.
  bool wait_for(std::uint64_t chunk) const {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(60),
                             [&] { return decoded_.contains(chunk); });
  }
  std::uint64_t decodes() const {
    const std::lock_guard lock(mutex_);
    return decodes_;
  }
  std::set<std::uint64_t> decoded() const {
    const std::lock_guard lock(mutex_);
    return decoded_;
  }

 private:
  std::uint64_t chunks_;
  std::uint64_t chunk_nbytes_;
  std::uint64_t stripe_;
  std::set<std::uint64_t> failing_;
  mutable std::mutex gate_;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  mutable std::set<std::uint64_t> decoded_;
  mutable std::uint64_t decodes_ = 0;
};

class ReadAheadTest : public ::testing::Test {
 protected:
  struct File {
    File(std::uint64_t chunks, std::uint64_t chunk_nbytes, std::set<std::uint64_t> failing,
         std::uint64_t stripe)
        : bytes(std::make_shared<ChunkedBytes>(chunks, chunk_nbytes, std::move(failing), stripe)),
          npy(std::make_shared<NpyFile>(
              NamedArray{.name = "x", .array = bytes, .format = "fake", .sources = {}}, 64)) {}
    std::shared_ptr<const ChunkedBytes> bytes;
    std::shared_ptr<const NpyFile> npy;
  };

  // Lives as long as the thread may look at it.
  const File& make_file(std::uint64_t chunks, std::uint64_t chunk_nbytes = kChunk,
                        std::set<std::uint64_t> failing = {}, std::uint64_t stripe = 0) {
    files_.push_back(std::make_unique<File>(chunks, chunk_nbytes, std::move(failing),
                                            stripe == 0 ? chunk_nbytes : stripe));
    return *files_.back();
  }
  // Reads [begin, end) of the file in order, in requests like the kernel's.
  void read_in_order(const File& file, std::uint64_t begin, std::uint64_t end) {
    constexpr std::uint64_t kRequest = 128 << 10;
    for (; begin < end; begin += kRequest) {
      ahead_.note_read(file.npy, {begin, std::min(begin + kRequest, end)}, {}, true);
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
  Fetcher fetcher_{cache_, verified_};
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
    ahead_.note_read(file.npy, {begin + (128 << 10), begin + (256 << 10)}, {}, true);
    ahead_.note_read(file.npy, {begin, begin + (128 << 10)}, {}, true);
  }
  EXPECT_TRUE(file.bytes->wait_for(40));
}

TEST_F(ReadAheadTest, FollowsSeveralReadersOfAFile) {
  const File& file = make_file(200);
  for (std::uint64_t at = 0; at < 1 << 20; at += 128 << 10) {
    for (const std::uint64_t begin : {std::uint64_t{0}, std::uint64_t{100} * kChunk}) {
      ahead_.note_read(file.npy, {begin + at, begin + at + (128 << 10)}, {}, true);
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

TEST_F(ReadAheadTest, LetsGoOfWhatReadersInOrderHaveTaken) {
  // 40 chunks of a MiB, of which 8 are held once they were taken; each lies in two requests more
  // than it has half MiBs, as a header stands before. Nothing is decoded ahead.
  const File& file = make_file(40, 1 << 20);
  ReadAhead idle(cache_, 0);
  const auto read = [&](std::uint64_t begin, std::uint64_t end) {
    for (std::uint64_t at = begin; at < end; at += 512 << 10) {
      Gathered gathered;
      const ByteRange range{at, at + (512 << 10)};
      fetcher_.read(
          range, [&](ByteRange wanted, Plan& plan) { file.npy->plan_read(wanted, plan); },
          gathered);
      idle.note_read(file.npy, range, gathered.chunk_uses(), true);
    }
  };
  const auto is_held = [&](std::uint64_t chunk) {
    const std::uint64_t before = file.bytes->decodes();
    cache_.load(*file.bytes, chunk);
    return file.bytes->decodes() == before;
  };
  // Not in order: whole chunks, but each other one.
  for (std::uint64_t chunk = 0; chunk < 40; chunk += 2) {
    read(chunk << 20, (chunk + 1) << 20);
  }
  EXPECT_TRUE(is_held(0));
  EXPECT_TRUE(is_held(20));
  read(0, 40 << 20);
  EXPECT_TRUE(is_held(38));
  EXPECT_FALSE(is_held(10));
  EXPECT_FALSE(is_held(20));
}

TEST_F(ReadAheadTest, LeavesWhatAReaderHasReadItselfByNow) {
  const File& first = make_file(100);
  const File& second = make_file(100);
  {
    // The thread is kept waiting in the one file; what is to be done in the other waits.
    const auto held = first.bytes->hold();
    read_in_order(first, 0, 1 << 20);
    read_in_order(second, 0, 1 << 20);
    read_in_order(second, 1 << 20, 60 * kChunk);
  }
  EXPECT_TRUE(second.bytes->wait_for(99));
  EXPECT_FALSE(second.bytes->decoded().contains(20));
}

// As when the view that the file is of goes.
TEST_F(ReadAheadTest, KeepsAFileAsLongAsSomethingIsWantedOfIt) {
  const File& first = make_file(100);
  const File& second = make_file(100);
  std::weak_ptr<const NpyFile> gone = second.npy;
  {
    const auto held = first.bytes->hold();
    read_in_order(first, 0, 1 << 20);
    read_in_order(second, 0, 1 << 20);
    files_.back()->npy.reset();
    EXPECT_FALSE(gone.expired());
  }
  EXPECT_TRUE(second.bytes->wait_for(20));
  finish_earlier();
  EXPECT_TRUE(gone.expired());
}

TEST_F(ReadAheadTest, TakesAShortLastStep) {
  const File& file = make_file(17);
  read_in_order(file, 0, 16 * kChunk);
  EXPECT_TRUE(file.bytes->wait_for(16));
}

TEST_F(ReadAheadTest, TakesNoMoreThanItsShareOfTheCache) {
  // A row of 2 MiB crosses 32 chunks of 4 MiB: half a MiB ahead of the reader is 8 of them, from
  // the end of chunk 7's stripe on, as a header stands before; and its share is 2.
  const File& file = make_file(32, 4 << 20, {}, 64 << 10);
  read_in_order(file, 0, 512 << 10);
  finish_earlier();
  EXPECT_EQ(file.bytes->decoded(), (std::set<std::uint64_t>{7, 8}));
  // Not before it has come that far.
  read_in_order(file, 512 << 10, 640 << 10);
  finish_earlier();
  EXPECT_EQ(file.bytes->decoded(), (std::set<std::uint64_t>{7, 8, 9, 10}));
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
