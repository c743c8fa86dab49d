// SPDX-License-Identifier: Apache-2.0
//
// Which blocks of a kept array this process believes: it has written them, or held them against
// their CRC. Asked by every read, without a lock.

#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "threads/mutex.h"

namespace npyfs {

class BlockTrust {
 public:
  BlockTrust(std::uint64_t block_count, std::uint64_t generation)
      : generation_(generation), states_(block_count) {}

  // The map's generation that all that is believed belongs to. To be asked before has(): bytes that
  // were read after has(), and before the map still had this generation, are the block's.
  std::uint64_t generation() const { return generation_.load(); }
  bool has(std::uint64_t block) const { return states_[block].load() == kGood; }
  // Whether the block did not fit its CRC. It is looked at again once it was written anew.
  bool is_bad(std::uint64_t block) const { return states_[block].load() == kBad; }

  // What was found out of a block while the map had this generation; nothing happens where it has
  // another one by now.
  void note(std::uint64_t block, bool is_good, std::uint64_t generation) {
    const MutexLock lock(mutex_);
    if (generation == generation_.load()) {
      states_[block] = is_good ? kGood : kBad;
    }
  }
  // Believes nothing any more: the map has another generation.
  void forget(std::uint64_t generation) {
    const MutexLock lock(mutex_);
    if (generation == generation_.load()) {
      return;
    }
    for (std::atomic<std::uint8_t>& state : states_) {
      state = kUnknown;
    }
    generation_ = generation;
  }

 private:
  static constexpr std::uint8_t kUnknown = 0;
  static constexpr std::uint8_t kGood = 1;
  static constexpr std::uint8_t kBad = 2;

  Mutex mutex_;  // of writers
  std::atomic<std::uint64_t> generation_;
  std::vector<std::atomic<std::uint8_t>> states_;
};

}  // namespace npyfs
