// SPDX-License-Identifier: Apache-2.0
//
// The cache of decoded chunks: one decoding for all, bounded, with a memory for damage.

#include "fs/block_cache.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <random>
#include <thread>

#include "fs/verified_records.h"
#include "tests/support/count_waits.h"
#include "tests/support/fake_table.h"
#include "tests/support/read_plan.h"

namespace npyfs {
namespace {

using testing::bytes_field;
using testing::FakeRecords;
using testing::make_table;
using testing::refusal_of;
using testing::text_of;

// Chunks of one size, filled with their number.
class Chunks : public ChunkSource {
 public:
  using Hook = std::function<void(std::uint64_t, std::span<std::byte>, DecodeContext&)>;
  explicit Chunks(std::uint64_t nbytes, Hook hook = {}) : nbytes_(nbytes), hook_(std::move(hook)) {}

  std::uint64_t chunk_nbytes(std::uint64_t /*chunk*/) const override { return nbytes_; }
  void decode(std::uint64_t chunk, std::span<std::byte> out,
              DecodeContext& context) const override {
    {
      const std::lock_guard lock(mutex_);
      ++decodes_[chunk];
    }
    std::fill(out.begin(), out.end(), static_cast<std::byte>(chunk));
    if (hook_) {
      hook_(chunk, out, context);
    }
  }
  std::uint64_t decodes(std::uint64_t chunk) const {
    const std::lock_guard lock(mutex_);
    return decodes_[chunk];
  }

 private:
  std::uint64_t nbytes_;
  Hook hook_;
  mutable std::mutex mutex_;
  mutable std::map<std::uint64_t, std::uint64_t> decodes_;
};

std::string expected(const Chunks& chunks, std::uint64_t chunk) {
  return std::string(chunks.chunk_nbytes(chunk), static_cast<char>(chunk));
}

class BlockCacheTest : public ::testing::Test {
 protected:
  VerifiedRecords verified_{Verify::kRead};
  const Chunks* decoding_ = nullptr;
};

TEST_F(BlockCacheTest, DecodesOnce) {
  const Chunks chunks(1000);
  const Chunks others(10);
  BlockCache cache(1 << 20, verified_);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(text_of(cache.get(chunks, 7)->bytes), expected(chunks, 7));
    EXPECT_EQ(text_of(cache.get(chunks, 8)->bytes), expected(chunks, 8));
    EXPECT_EQ(text_of(cache.get(others, 7)->bytes), expected(others, 7));
  }
  EXPECT_EQ(chunks.decodes(7), 1U);
  EXPECT_EQ(chunks.decodes(8), 1U);
  EXPECT_EQ(others.decodes(7), 1U);
}

TEST_F(BlockCacheTest, ASourceWhereAnotherHasBeenIsAnother) {
  BlockCache cache(1 << 20, verified_);
  std::optional<Chunks> chunks(std::in_place, 1000);
  EXPECT_EQ(cache.get(*chunks, 7)->bytes.size(), 1000U);
  chunks.emplace(10);
  EXPECT_EQ(cache.get(*chunks, 7)->bytes.size(), 10U);
  EXPECT_EQ(chunks->decodes(7), 1U);
}

// Eight threads ask for one chunk; whoever decodes it goes on only once all others wait for that,
// or have done something else.
struct EightThreads {
  static constexpr std::uint64_t kThreads = 8;

  const std::uint64_t waits_before = testing::waits_begun();
  std::atomic<std::uint64_t> decoding{0};
  std::atomic<std::uint64_t> finished{0};

  void wait_for_others() {
    ++decoding;
    while (testing::waits_begun() - waits_before + decoding + finished < kThreads) {
      std::this_thread::yield();
    }
  }
  void run(const std::function<void(std::size_t)>& ask) {
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < kThreads; ++i) {
      threads.emplace_back([&, i] {
        ask(i);
        ++finished;
      });
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
  }
};

TEST_F(BlockCacheTest, DecodesOnceForEightThreadsWhateverItsCapacity) {
  for (const std::uint64_t capacity : {1 << 20, 0}) {
    SCOPED_TRACE(capacity);
    EightThreads threads;
    const Chunks chunks(1000, [&](auto, auto, auto&) { threads.wait_for_others(); });
    BlockCache cache(capacity, verified_);
    std::vector<std::shared_ptr<const Block>> blocks(EightThreads::kThreads);
    threads.run([&](std::size_t i) { blocks[i] = cache.get(chunks, 3); });
    EXPECT_EQ(chunks.decodes(3), 1U);
    EXPECT_EQ(cache.counts().waits, EightThreads::kThreads - 1);
    EXPECT_EQ(cache.counts().hits, 0U);
    for (const auto& block : blocks) {
      ASSERT_NE(block, nullptr);
      EXPECT_TRUE(block == blocks[0]);
      EXPECT_EQ(text_of(block->bytes), expected(chunks, 3));
    }
  }
}

TEST_F(BlockCacheTest, WhatReadersHaveTakenAllOfIsNotHeldForLong) {
  constexpr std::uint64_t kChunk = 1 << 20;
  const Chunks chunks(kChunk);
  BlockCache cache(64 << 20, verified_);
  // A half, and the other.
  for (std::uint64_t chunk = 0; chunk < 32; ++chunk) {
    cache.get(chunks, chunk);
    cache.note_taken({{&chunks, chunk, kChunk / 2}});
    if (chunk != 3) {
      cache.note_taken({{&chunks, chunk, kChunk / 4}, {&chunks, chunk, kChunk / 4}});
    }
  }
  // The last ones may be asked for again; of chunk 3 there is more to take.
  for (const std::uint64_t held : {3, 28, 31}) {
    cache.get(chunks, held);
    EXPECT_EQ(chunks.decodes(held), 1U) << held;
  }
  for (const std::uint64_t gone : {0, 2, 20}) {
    cache.get(chunks, gone);
    EXPECT_EQ(chunks.decodes(gone), 2U) << gone;
  }
  // What was asked for again is held as any other.
  for (std::uint64_t chunk = 40; chunk < 60; ++chunk) {
    cache.get(chunks, chunk);
    cache.note_taken({{&chunks, chunk, kChunk}});
  }
  cache.get(chunks, 31);
  EXPECT_EQ(chunks.decodes(31), 1U);
}

TEST_F(BlockCacheTest, RoomIsMadeOfWhatWasTakenFirst) {
  constexpr std::uint64_t kChunk = 1 << 20;
  const Chunks chunks(kChunk);
  BlockCache cache(4 * kChunk + kChunk / 2, verified_);
  for (std::uint64_t chunk = 0; chunk < 4; ++chunk) {
    cache.get(chunks, chunk);
  }
  cache.note_taken({{&chunks, 3, kChunk}, {&chunks, 99, kChunk}});
  cache.get(chunks, 4);
  cache.get(chunks, 0);
  EXPECT_EQ(chunks.decodes(0), 1U);
  cache.get(chunks, 3);
  EXPECT_EQ(chunks.decodes(3), 2U);
}

TEST_F(BlockCacheTest, LoadsForWhoComesLater) {
  const Chunks chunks(1000, [](auto chunk, auto, auto&) {
    if (chunk == 4) {
      throw Error(ErrorKind::kCorrupt, "chunk 4 is bad");
    }
  });
  BlockCache cache(1 << 20, verified_);
  cache.load(chunks, 3);
  cache.load(chunks, 3);
  EXPECT_EQ(text_of(cache.get(chunks, 3)->bytes), expected(chunks, 3));
  cache.load(chunks, 3);
  EXPECT_EQ(chunks.decodes(3), 1U);
  EXPECT_EQ(refusal_of([&] { cache.load(chunks, 4); }).text, "chunk 4 is bad");
  EXPECT_EQ(refusal_of([&] { cache.get(chunks, 4); }).text, "chunk 4 is bad");
  EXPECT_EQ(chunks.decodes(4), 1U);
}

TEST_F(BlockCacheTest, ALoadDoesNotWaitForWhoDecodesAndTheyWaitForIt) {
  BlockCache cache(1 << 20, verified_);
  std::thread reader;
  const std::uint64_t waits_before = testing::waits_begun();
  std::string seen;
  const Chunks chunks(1000, [&](auto, auto, auto&) {
    const Chunks& self = *decoding_;
    cache.load(self, 3);  // announced already: comes back at once
    reader = std::thread([&] { seen = text_of(cache.get(self, 3)->bytes); });
    while (testing::waits_begun() == waits_before) {
      std::this_thread::yield();
    }
  });
  decoding_ = &chunks;
  cache.load(chunks, 3);
  reader.join();
  EXPECT_EQ(seen, expected(chunks, 3));
  EXPECT_EQ(chunks.decodes(3), 1U);
}

TEST_F(BlockCacheTest, ThrowsAFailureToAllWhoWaitForIt) {
  for (const ErrorKind kind : {ErrorKind::kCorrupt, ErrorKind::kIo}) {
    EightThreads threads;
    const Chunks chunks(1000, [&](auto, auto, auto&) {
      threads.wait_for_others();
      throw Error(kind, "no");
    });
    BlockCache cache(1 << 20, verified_);
    std::vector<std::optional<ErrorKind>> failures(EightThreads::kThreads);
    threads.run(
        [&](std::size_t i) { failures[i] = refusal_of([&] { cache.get(chunks, 3); }).kind; });
    EXPECT_EQ(chunks.decodes(3), 1U);
    EXPECT_EQ(failures, std::vector<std::optional<ErrorKind>>(EightThreads::kThreads, kind));
  }
}

TEST_F(BlockCacheTest, RemembersWhatWillFailAgain) {
  for (const ErrorKind kind :
       {ErrorKind::kCorrupt, ErrorKind::kTooLarge, ErrorKind::kUnsupported}) {
    const Chunks chunks(10, [&](auto chunk, auto, auto&) {
      if (chunk == 1) {
        throw Error(kind, "chunk 1 is bad");
      }
    });
    BlockCache cache(1 << 20, verified_);
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(refusal_of([&] { cache.get(chunks, 1); }).text, "chunk 1 is bad");
      cache.get(chunks, 2);
    }
    EXPECT_EQ(chunks.decodes(1), 1U);
  }
}

TEST_F(BlockCacheTest, TriesAgainWhatMayPass) {
  int left = 2;
  const Chunks chunks(10, [&](auto, auto, auto&) {
    if (left == 2) {
      --left;
      throw Error(ErrorKind::kIo, "the disk is away", EIO);
    }
    if (left == 1) {
      --left;
      throw std::bad_alloc();
    }
  });
  BlockCache cache(1 << 20, verified_);
  EXPECT_EQ(refusal_of([&] { cache.get(chunks, 1); }).kind, ErrorKind::kIo);
  EXPECT_THROW(cache.get(chunks, 1), std::bad_alloc);
  EXPECT_EQ(text_of(cache.get(chunks, 1)->bytes), expected(chunks, 1));
  EXPECT_EQ(chunks.decodes(1), 3U);
}

TEST_F(BlockCacheTest, KeepsTheDamageInsideABlock) {
  const Chunks chunks(100, [](auto, auto, DecodeContext& context) {
    context.mark_damaged({10, 20},
                         std::make_exception_ptr(Error(ErrorKind::kCorrupt, "ten are bad")));
  });
  BlockCache cache(1 << 20, verified_);
  for (int i = 0; i < 2; ++i) {
    const auto block = cache.get(chunks, 0);
    block->require_good({0, 10});
    EXPECT_EQ(refusal_of([&] { block->require_good({0, 11}); }).text, "ten are bad");
  }
  EXPECT_EQ(chunks.decodes(0), 1U);
}

TEST_F(BlockCacheTest, RespectsItsCapacity) {
  constexpr std::uint64_t kCapacity = 20'000;
  const Chunks small(500);
  const Chunks large(6000);
  BlockCache cache(kCapacity, verified_);
  std::vector<std::weak_ptr<const Block>> seen;
  std::mt19937 random(1);
  for (int i = 0; i < 2000; ++i) {
    const Chunks& chunks = random() % 3 == 0 ? large : small;
    const std::uint64_t chunk = random() % 50;
    const auto block = cache.get(chunks, chunk);
    ASSERT_EQ(text_of(block->bytes), expected(chunks, chunk));
    seen.push_back(block);
    std::set<std::shared_ptr<const Block>> held;
    for (const auto& weak : seen) {
      if (auto alive = weak.lock(); alive != nullptr && alive != block) {
        held.insert(alive);
      }
    }
    std::uint64_t nbytes = 0;
    for (const auto& alive : held) {
      nbytes += alive->bytes.size();
    }
    ASSERT_LE(nbytes, kCapacity);
    std::erase_if(seen, [](const auto& weak) { return weak.expired(); });
  }
}

TEST_F(BlockCacheTest, ForgetsWhatWasUnusedLongest) {
  const Chunks chunks(1000);
  BlockCache cache(4000, verified_);  // three blocks and what they cost besides
  cache.get(chunks, 0);
  for (std::uint64_t chunk = 1; chunk < 10; ++chunk) {
    cache.get(chunks, chunk);
    cache.get(chunks, 0);
  }
  EXPECT_EQ(chunks.decodes(0), 1U);
  cache.get(chunks, 1);
  EXPECT_EQ(chunks.decodes(1), 2U);
}

TEST_F(BlockCacheTest, WhatAReaderHoldsDoesNotVanish) {
  const Chunks chunks(1000);
  BlockCache cache(0, verified_);
  const auto held = cache.get(chunks, 1);
  for (std::uint64_t chunk = 2; chunk < 20; ++chunk) {
    cache.get(chunks, chunk);
  }
  EXPECT_EQ(text_of(held->bytes), expected(chunks, 1));
}

TEST_F(BlockCacheTest, LetsADecoderAskForOtherChunks) {
  for (const std::uint64_t capacity : {1 << 20, 0}) {
    BlockCache cache(capacity, verified_);
    const Chunks inner(100);
    const Chunks outer(100, [&](auto chunk, std::span<std::byte> out, auto&) {
      const auto first = cache.get(inner, chunk + 1);
      const auto second = cache.get(inner, chunk + 2);
      out[0] = first->bytes[0];
      out[1] = second->bytes[0];
    });
    const auto block = cache.get(outer, 5);
    EXPECT_EQ(text_of(std::span(block->bytes).first(3)), "\6\7\5");
  }
}

TEST_F(BlockCacheTest, AnswersWhatADecoderRequires) {
  FakeRecords records;
  records.fields = {bytes_field("x", {"aa", "bb"})};
  records.checksums = true;
  records.failing = {1};
  const auto table = make_table(records);
  const Chunks chunks(10, [&](auto chunk, auto, DecodeContext& context) {
    context.require_intact({table.get(), chunk, 1});
  });
  BlockCache cache(1 << 20, verified_);
  EXPECT_EQ(text_of(cache.get(chunks, 0)->bytes), expected(chunks, 0));
  EXPECT_EQ(refusal_of([&] { cache.get(chunks, 1); }).kind, ErrorKind::kCorrupt);
  VerifiedRecords never(Verify::kNever);
  BlockCache careless(1 << 20, never);
  EXPECT_EQ(text_of(careless.get(chunks, 1)->bytes), expected(chunks, 1));
}

TEST_F(BlockCacheTest, KeepsNothingDecodedFromAChangedSource) {
  const testing::FakeSource source("s", "abc");
  const Chunks chunks(3, [&](auto, std::span<std::byte> out, auto&) { source.read_at(0, out); });
  BlockCache cache(1 << 20, verified_);
  source.set_changed();
  EXPECT_EQ(refusal_of([&] { cache.get(chunks, 0); }).kind, ErrorKind::kChanged);
  EXPECT_EQ(refusal_of([&] { cache.get(chunks, 0); }).kind, ErrorKind::kChanged);
}

TEST_F(BlockCacheTest, ServesThreadsAtRandom) {
  const Chunks chunks(300, [](auto chunk, auto, auto&) {
    if (chunk % 10 == 9) {
      throw Error(ErrorKind::kCorrupt, "every tenth is bad");
    }
  });
  BlockCache cache(3000, verified_);
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (std::uint32_t t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(t);
      for (int i = 0; i < 2000; ++i) {
        const std::uint64_t chunk = random() % 40;
        try {
          const auto block = cache.get(chunks, chunk);
          wrong += chunk % 10 == 9 || text_of(block->bytes) != expected(chunks, chunk) ? 1 : 0;
        } catch (const Error&) {
          wrong += chunk % 10 != 9 ? 1 : 0;
        }
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(chunks.decodes(9), 1U);
}

TEST_F(BlockCacheTest, LetsGoOfWhatASourceThatEndsHas) {
  const Chunks stays(1000);
  const Chunks ends(1000, [](std::uint64_t chunk, std::span<std::byte>, DecodeContext&) {
    if (chunk == 3) {
      throw Error(ErrorKind::kCorrupt, "bad");
    }
  });
  BlockCache cache(1 << 20, verified_);
  const std::weak_ptr<const Block> taken = cache.get(ends, 1);
  const std::weak_ptr<const Block> block = cache.get(ends, 2);
  cache.note_taken({{&ends, 1, 1000}});
  EXPECT_THROW(cache.get(ends, 3), Error);
  cache.get(stays, 1);
  cache.drop(ends.serial());
  EXPECT_TRUE(taken.expired());
  EXPECT_TRUE(block.expired());
  cache.get(stays, 1);
  EXPECT_EQ(stays.decodes(1), 1U);
  EXPECT_THROW(cache.get(ends, 3), Error);
  EXPECT_EQ(ends.decodes(3), 2U) << "what had failed is gone, too";
  cache.drop(ends.serial());
  cache.drop(ends.serial());
  // There is as much room as if they had never been.
  const std::uint64_t most = (1 << 20) / (1000 + 256);
  for (int round = 0; round < 2; ++round) {
    for (std::uint64_t chunk = 1; chunk <= most; ++chunk) {
      cache.get(stays, chunk);
    }
  }
  for (std::uint64_t chunk = 1; chunk <= most; ++chunk) {
    EXPECT_EQ(stays.decodes(chunk), 1U) << chunk;
  }
}

TEST_F(BlockCacheTest, CountsWhatItIsAskedFor) {
  const Chunks chunks(1000, [](std::uint64_t chunk, std::span<std::byte>, DecodeContext&) {
    if (chunk == 9) {
      throw Error(ErrorKind::kCorrupt, "bad");
    }
  });
  BlockCache cache(4000, verified_);  // three blocks and what they cost besides
  const BlockCache::Asked before = BlockCache::asked_by_this_thread();
  cache.get(chunks, 0);
  cache.get(chunks, 0);
  cache.load(chunks, 0);
  cache.load(chunks, 1);
  cache.load(chunks, 2);
  cache.get(chunks, 1);
  cache.get(chunks, 1);
  CacheCounts counts = cache.counts();
  EXPECT_EQ(counts.hits, 3U);
  EXPECT_EQ(counts.loads, 3U);
  EXPECT_EQ(counts.decoded_nbytes, 3000U);
  EXPECT_EQ(counts.evicted, 0U);
  EXPECT_GE(counts.held_nbytes, 3000U);
  EXPECT_EQ(counts.capacity_nbytes, 4000U);
  EXPECT_EQ(counts.ahead_issued, 2U);
  EXPECT_EQ(counts.ahead_used, 1U);
  EXPECT_EQ(counts.ahead_wasted, 0U);
  for (int i = 0; i < 3; ++i) {
    EXPECT_THROW(cache.get(chunks, 9), Error);
  }
  for (std::uint64_t chunk = 3; chunk < 6; ++chunk) {
    cache.get(chunks, chunk);
  }
  counts = cache.counts();
  EXPECT_EQ(counts.hits, 3U);
  EXPECT_EQ(counts.waits, 0U);
  EXPECT_EQ(counts.loads, 6U);
  EXPECT_EQ(counts.failures, 1U) << "found once, remembered after that";
  EXPECT_EQ(counts.evicted, 3U);
  EXPECT_EQ(counts.ahead_used, 1U);
  EXPECT_EQ(counts.ahead_wasted, 1U);
  const BlockCache::Asked& after = BlockCache::asked_by_this_thread();
  EXPECT_EQ(after.all - before.all, 10U);
  EXPECT_EQ(after.decoded - before.decoded, 5U) << "0, 9, 3, 4, 5";
}

TEST_F(BlockCacheTest, WhatGoesWithItsSourceWasWastedToo) {
  const Chunks chunks(1000);
  BlockCache cache(1 << 20, verified_);
  cache.load(chunks, 1);
  cache.load(chunks, 2);
  cache.get(chunks, 2);
  cache.drop(chunks.serial());
  EXPECT_EQ(cache.counts().ahead_wasted, 1U);
  EXPECT_EQ(cache.counts().evicted, 0U);
}

}  // namespace
}  // namespace npyfs
