// SPDX-License-Identifier: Apache-2.0
//
// The room against a model: a set of blocks. Alone, where every answer is known; and with threads
// of several "processes" (folders opened anew) on a failing disk, where every answer but a wrong
// byte is allowed. The second is what the thread sanitizer is for.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <array>
#include <atomic>
#include <map>
#include <random>
#include <thread>

#include "kept/eviction.h"
#include "kept/kept_rows.h"
#include "tests/kept/faulty_disk.h"
#include "tests/kept/kept_setting.h"

namespace npyfs {
namespace {

using testing::all_blocks;
using testing::CacheFolder;
using testing::content_of;
using testing::key_of;
using testing::read;
using testing::read_block;
using testing::reference;
using testing::write;

using Outcome = KeptArray::Outcome;

constexpr std::uint64_t kArrays = 3;
constexpr std::chrono::seconds kNoTime{0};

std::uint64_t nbytes_of(std::uint64_t number) {
  return (number + 1) * kKeptBlockNbytes + 1000 * number;
}

std::string any_read(const KeptArray& array, std::uint64_t number, std::mt19937_64& random) {
  const std::uint64_t offset = random() % array.nbytes();
  return read(array, number, offset,
              std::min<std::uint64_t>(random() % 20'000, array.nbytes() - offset));
}

TEST(KeptModel, AnswersAsASetOfBlocksWould) {
  CacheFolder cache;
  std::mt19937_64 random(20261122);
  std::map<std::uint64_t, std::vector<bool>> there;
  std::map<std::uint64_t, std::shared_ptr<KeptArray>> open;
  const auto forget = [&](std::uint64_t number) {
    there[number].assign(kept_block_count(nbytes_of(number)), false);
    open[number] = nullptr;
  };
  for (std::uint64_t number = 0; number < kArrays; ++number) {
    forget(number);
  }
  std::uint64_t hits = 0;
  for (int step = 0; step < 600; ++step) {
    const std::uint64_t number = random() % kArrays;
    std::shared_ptr<KeptArray>& array = open[number];
    if (!array || random() % 4 == 0) {
      array = cache.open()->open(key_of(number), nbytes_of(number));
      ASSERT_TRUE(array);
    }
    const std::uint64_t block = random() % array->block_count();
    std::vector<bool>& blocks = there[number];
    switch (random() % 16) {
      case 0:
        ASSERT_EQ(write(*array, number, {block}), Outcome::kKept);
        blocks[block] = true;
        break;
      case 1: {  // a failing disk: it may be there afterwards, or not
        testing::set_disk_faults({.writes = 3, .syncs = 3}, static_cast<std::uint32_t>(step));
        const Outcome outcome = write(*array, number, {block});
        testing::set_disk_faults({});
        const std::string answer = read_block(*array, number, block);
        ASSERT_NE(answer, "wrong bytes");
        ASSERT_TRUE(outcome != Outcome::kKept || answer == "hit");
        ASSERT_TRUE(!blocks[block] || answer == "hit");
        blocks[block] = answer == "hit";
        break;
      }
      case 2:
        if (random() % 8 == 0) {
          ASSERT_TRUE(cache.open()->drop(array->name()));
          forget(number);
        }
        break;
      case 3: {
        // The last block that is there goes.
        const auto last = std::find(blocks.rbegin(), blocks.rend(), true);
        if (last != blocks.rend() && std::filesystem::exists(cache.part(number))) {
          for (std::uint64_t other = 0; other < kArrays; ++other) {
            const timespec used{other == number ? 1 : 2, 0};
            const timespec times[2] = {used, used};
            ::utimensat(AT_FDCWD, cache.map(other).c_str(), times, 0);
          }
          ASSERT_GT(evict(cache.open()->disk(), 1, "", kNoTime), 0u);
          *last = false;
        }
        break;
      }
      case 4:
        EXPECT_TRUE(array->check());
        break;
      default: {
        ASSERT_EQ(read_block(*array, number, block), blocks[block] ? "hit" : "miss") << step;
        hits += blocks[block] ? 1 : 0;
        const auto absent = std::find(blocks.begin(), blocks.end(), false);
        if (absent == blocks.end()) {
          array->refresh();
          ASSERT_TRUE(array->is_complete());
        } else {
          ASSERT_EQ(testing::first_missing(*array),
                    static_cast<std::uint64_t>(absent - blocks.begin()));
        }
      }
    }
  }
  EXPECT_GT(hits, 100u);
}

// One "process": its own folder and arrays.
class Worker {
 public:
  Worker(CacheFolder& cache, std::uint64_t seed) : cache_(cache), random_(seed) { reopen(); }

  void work(int steps) {
    for (int step = 0; step < steps; ++step) {
      const std::uint64_t number = random_() % kArrays;
      const std::shared_ptr<KeptArray> array = array_of(number);
      if (array) {
        act(*array, number);
      }
      if (random_() % 50 == 0) {
        reopen();
      }
    }
  }
  // Of the same process, at the same time.
  void read_on(const std::atomic<bool>& ends, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    while (!ends) {
      const std::uint64_t number = random() % kArrays;
      if (const std::shared_ptr<KeptArray> array = array_of(number)) {
        note(any_read(*array, number, random));
      }
    }
  }

  std::uint64_t hits() const { return hits_; }
  std::uint64_t wrong() const { return wrong_; }

 private:
  void reopen() {
    KeptOptions options;
    options.most_nbytes = 5 * kKeptBlockNbytes;
    options.spared_after_use = kNoTime;
    options.lock_wait = std::chrono::milliseconds(20);
    const auto folder = cache_.open(options);
    for (std::uint64_t number = 0; number < kArrays; ++number) {
      const auto array = folder->open(key_of(number), nbytes_of(number));
      const std::lock_guard<std::mutex> lock(mutex_);
      arrays_[number] = array;
    }
  }
  std::shared_ptr<KeptArray> array_of(std::uint64_t number) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return arrays_[number];
  }
  void note(const std::string& answer) {
    hits_ += answer == "hit" ? 1 : 0;
    wrong_ += answer == "wrong bytes" ? 1 : 0;
  }
  void act(KeptArray& array, std::uint64_t number) {
    switch (random_() % 12) {
      case 0:
        array.refresh();
        break;
      case 1:
        array.check();
        break;
      case 2:
        if (array.is_dropped() || random_() % 10 == 0) {
          reopen();
        }
        break;
      case 3:
        if (random_() % 4 == 0) {
          cache_evict(number);
        }
        break;
      case 4:
      case 5:
      case 6:
        write(array, number, {random_() % array.block_count()});
        break;
      default:
        note(any_read(array, number, random_));
    }
  }
  void cache_evict(std::uint64_t except) {
    try {
      evict(DiskFolder(cache_.path()), kKeptBlockNbytes, key_of(except).name(), kNoTime);
    } catch (const Error&) {
      // The disk fails at times.
    }
  }

  CacheFolder& cache_;
  std::mt19937_64 random_;
  std::mutex mutex_;
  std::array<std::shared_ptr<KeptArray>, kArrays> arrays_;
  std::atomic<std::uint64_t> hits_{0};
  std::atomic<std::uint64_t> wrong_{0};
};

TEST(KeptModel, NoThreadEverReadsAWrongByte) {
  for (const std::uint32_t one_in : {0, 40}) {
    CacheFolder cache;
    Worker first(cache, 1);
    Worker second(cache, 2);
    testing::set_disk_faults(
        {.reads = one_in, .writes = one_in, .syncs = one_in, .punches = one_in});
    std::atomic<bool> ends{false};
    std::vector<std::thread> readers;
    readers.emplace_back([&] { first.read_on(ends, 3); });
    readers.emplace_back([&] { second.read_on(ends, 4); });
    std::thread other([&] { second.work(300); });
    first.work(300);
    other.join();
    ends = true;
    for (std::thread& reader : readers) {
      reader.join();
    }
    testing::set_disk_faults({});
    EXPECT_EQ(first.wrong() + second.wrong(), 0u);
    EXPECT_GT(first.hits() + second.hits(), 100u);
    // Nothing of all that stands in the way of a complete array.
    const auto array = cache.open()->open(key_of(2), nbytes_of(2));
    ASSERT_TRUE(array);
    if (array->needs_check()) {
      array->check();
    }
    const auto again = cache.open()->open(key_of(2), nbytes_of(2));
    ASSERT_TRUE(again);
    EXPECT_EQ(write(*again, 2, all_blocks(*again)), Outcome::kKept);
    EXPECT_TRUE(again->is_complete());
    EXPECT_EQ(content_of(cache.complete(2)), reference(2, 0, nbytes_of(2)));
  }
}

}  // namespace
}  // namespace npyfs
