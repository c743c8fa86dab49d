// SPDX-License-Identifier: Apache-2.0

#include "fs/request_stats.h"

#include <algorithm>
#include <bit>
#include <thread>

namespace npyfs {

namespace {

// Each takes 48 KiB.
std::size_t count_shards() {
  return std::bit_ceil(std::clamp<std::size_t>(std::thread::hardware_concurrency(), 4, 64));
}

// Threads are numbered as they begin to count.
std::size_t thread_number() noexcept {
  static std::atomic<std::size_t> next{0};
  thread_local const std::size_t number = next.fetch_add(1, std::memory_order_relaxed);
  return number;
}

}  // namespace

static_assert(kErrorKindNames.size() == static_cast<std::size_t>(ErrorKind::kTooLarge) + 2);

RequestStats::RequestStats() : shards_(count_shards()) {}

RequestStats::Shard& RequestStats::shard() noexcept {
  return shards_[thread_number() & (shards_.size() - 1)];
}

void RequestStats::count_error(ErrorKind kind) noexcept {
  errors_[static_cast<std::size_t>(kind)].fetch_add(1, std::memory_order_relaxed);
}

void RequestStats::count_other_error() noexcept {
  errors_.back().fetch_add(1, std::memory_order_relaxed);
}

std::uint64_t RequestStats::count_reads() const {
  std::uint64_t count = 0;
  for (const Shard& shard : shards_) {
    for (std::size_t i = kRequestNames.size(); i < kSlots; ++i) {
      count += shard.slots[i].count.load(std::memory_order_relaxed);
    }
  }
  return count;
}

RequestTotals RequestStats::totals() const {
  RequestTotals totals;
  for (const Shard& shard : shards_) {
    for (std::size_t i = 0; i < kSlots; ++i) {
      const Slot& slot = shard.slots[i];
      RequestTotals::Asked& asked =
          i < kRequestNames.size() ? totals.requests[i] : totals.reads[i - kRequestNames.size()];
      asked.count += slot.count.load(std::memory_order_relaxed);
      asked.nbytes += slot.nbytes.load(std::memory_order_relaxed);
      slot.latency.add_to(asked.latency);
    }
  }
  for (std::size_t i = 0; i < errors_.size(); ++i) {
    totals.errors[i] = errors_[i].load(std::memory_order_relaxed);
  }
  return totals;
}

}  // namespace npyfs
