// SPDX-License-Identifier: Apache-2.0
//
// One process of the kill campaign (test_campaign.py):
//
//   campaign_worker work FOLDER SEED [BLOCKS]   fills, reads, evicts and checks until it is killed;
//                                               the folder is bounded to so many blocks (20)
//   campaign_worker verify FOLDER               reads all that is kept
//   campaign_worker complete FOLDER             fills all that is not kept, and compares the files
//
// Exits with 3 and says where, if ever a byte that it was given is not the reference's. `verify`
// and `complete` print how many blocks were served.

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <random>
#include <thread>

#include "kept/eviction.h"
#include "kept/fill_queue.h"
#include "kept/kept_rows.h"
#include "tests/kept/kept_setting.h"

namespace npyfs {
namespace {

using testing::content_of;
using testing::key_of;
using testing::read_block;
using testing::reference;

constexpr std::uint64_t kArrays = 6;
constexpr int kWrongBytes = 3;

std::uint64_t nbytes_of(std::uint64_t number) {
  return (number % 4 + 1) * kKeptBlockNbytes + 4099 * number;
}

[[noreturn]] void give_up(const std::string& text) {
  fmt::print(stderr, "{}\n", text);
  std::_Exit(kWrongBytes);
}

void expect_right(const std::string& answer, std::uint64_t number, std::uint64_t block) {
  if (answer == "wrong bytes") {
    give_up(fmt::format("array {}, block {}: wrong bytes", number, block));
  }
}

KeptOptions options(std::uint64_t blocks) {
  KeptOptions options;
  options.most_nbytes = blocks * kKeptBlockNbytes;
  options.spared_after_use = std::chrono::seconds(0);
  options.pause_after_failure = std::chrono::milliseconds(0);
  options.lock_wait = std::chrono::milliseconds(20);
  return options;
}

class Campaigner {
 public:
  Campaigner(std::string path, std::uint64_t seed, std::uint64_t blocks)
      : path_(std::move(path)), random_(seed), blocks_(blocks) {}

  void work() {
    FillQueue queue;
    while (true) {
      try {
        use_folder(queue);
      } catch (const Error&) {
        // The disk is full, or has failed.
      }
    }
  }

 private:
  void use_folder(FillQueue& queue) {
    const auto folder = KeptFolder::open(path_, options(blocks_));
    for (int step = 0; step < 40; ++step) {
      const std::uint64_t number = random_() % kArrays;
      if (const auto array = folder->open(key_of(number), nbytes_of(number))) {
        act(*folder, queue, array, number);
      }
    }
  }

  void act(KeptFolder& folder, FillQueue& queue, const std::shared_ptr<KeptArray>& array,
           std::uint64_t number) {
    const std::uint64_t block = random_() % array->block_count();
    const std::uint64_t action = random_() % 40;
    if (action < 20) {
      expect_right(read_block(*array, number, block), number, block);
    } else if (action < 30) {
      // In three pieces, as readers bring them.
      const testing::Bytes bytes =
          reference(number, block * kKeptBlockNbytes, array->block_nbytes(block));
      const std::span<const std::byte> all(bytes);
      const std::size_t cut = random_() % all.size();
      queue.push(array, block * kKeptBlockNbytes + cut, all.subspan(cut));
      queue.push(array, block * kKeptBlockNbytes, all.first(cut));
    } else if (action < 36) {
      testing::write(*array, number, {block, random_() % array->block_count()});
    } else if (action < 37) {
      array->check();
    } else if (action < 39) {
      evict(folder.disk(), kKeptBlockNbytes, array->name(), std::chrono::seconds(0));
    } else {
      folder.drop(array->name());
    }
  }

  std::string path_;
  std::mt19937_64 random_;
  std::uint64_t blocks_;
};

// How many blocks were served.
std::uint64_t verify(const std::string& path) {
  const auto folder = KeptFolder::open(path, options(1000));
  std::uint64_t served = 0;
  for (std::uint64_t number = 0; number < kArrays; ++number) {
    const auto array = folder->find(key_of(number), nbytes_of(number));
    if (!array) {
      continue;
    }
    if (array->is_complete() && content_of(folder->disk().path_of(complete_name(array->name()))) !=
                                    reference(number, 0, nbytes_of(number))) {
      give_up(fmt::format("array {}: the complete file has wrong bytes", number));
    }
    for (std::uint64_t block = 0; block < array->block_count(); ++block) {
      const std::string answer = read_block(*array, number, block);
      expect_right(answer, number, block);
      served += answer == "hit" ? 1 : 0;
    }
  }
  return served;
}

void complete(const std::string& path) {
  const auto folder = KeptFolder::open(path, options(1000));
  for (std::uint64_t number = 0; number < kArrays; ++number) {
    auto array = folder->open(key_of(number), nbytes_of(number));
    if (array && array->needs_check() && !array->check()) {
      array = folder->open(key_of(number), nbytes_of(number));
    }
    if (array) {
      testing::write(*array, number, testing::all_blocks(*array));
    }
    if (!array || !array->is_complete()) {
      give_up(fmt::format("array {}: cannot be completed any more", number));
    }
  }
}

}  // namespace
}  // namespace npyfs

int main(int argc, char** argv) {
  const std::string verb = argc > 2 ? argv[1] : "";
  if (verb == "work" && argc > 3) {
    npyfs::Campaigner(argv[2], std::stoull(argv[3]), argc > 4 ? std::stoull(argv[4]) : 20).work();
  } else if (verb == "verify" || verb == "complete") {
    if (verb == "complete") {
      npyfs::complete(argv[2]);
    }
    fmt::print("{}\n", npyfs::verify(argv[2]));
    return 0;
  }
  return 2;
}
