// SPDX-License-Identifier: Apache-2.0
//
// What a mount was asked for, how it went, and how long it took. Counting takes no lock and no
// memory: threads count in shards of their own, which are added up when somebody wants to know.

#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "formats/bytes/error.h"
#include "fs/latency.h"

namespace npyfs {

// Names of the kinds, in the order of the enumerators.
enum class RequestKind { kLookup, kStat, kList, kXattr, kStatfs, kOpen, kOpenNative };
inline constexpr std::array<const char*, 7> kRequestNames = {
    "lookup", "stat", "list", "xattr", "statfs", "open", "open_native"};

// Where the bytes of a read came from.
enum class ReadWay {
  kMapped,   // the sources, as they are stored there
  kCached,   // chunks that were held decoded
  kDecoded,  // chunks of which one at least had to be decoded first, or waited for
  kKept,     // the cache folder
};
inline constexpr std::array<const char*, 4> kReadWayNames = {"mapped", "cached", "decoded", "kept"};

// What a request that failed was answered for: the kinds of Error, and any other exception.
inline constexpr std::array<const char*, 8> kErrorKindNames = {
    "usage", "not_found", "corrupt", "unsupported", "changed", "io", "too_large", "other"};

struct RequestTotals {
  struct Asked {
    std::uint64_t count = 0;
    std::uint64_t nbytes = 0;  // of reads
    Latency latency;
  };
  std::array<Asked, kRequestNames.size()> requests;
  std::array<Asked, kReadWayNames.size()> reads;
  std::array<std::uint64_t, kErrorKindNames.size()> errors{};
};

// Any thread.
class RequestStats {
 public:
  RequestStats();

  // A request is counted before it is answered, so that whoever was answered finds it counted; its
  // time once that is done.
  void count(RequestKind request) noexcept { count_slot(slot_of(request), 0); }
  void count(ReadWay way, std::uint64_t nbytes) noexcept { count_slot(slot_of(way), nbytes); }
  void count_error(ErrorKind kind) noexcept;
  void count_other_error() noexcept;

  RequestTotals totals() const;
  // Reads that were answered: a little of totals(), for who asks often.
  std::uint64_t count_reads() const;

 private:
  friend class RequestTimer;
  static constexpr std::size_t kSlots = kRequestNames.size() + kReadWayNames.size();
  struct Slot {
    std::atomic<std::uint64_t> count{0};
    std::atomic<std::uint64_t> nbytes{0};
    LatencyCounter latency;
  };
  // Lines of their own: threads on several cores would else wait for each other's.
  struct alignas(64) Shard {
    std::array<Slot, kSlots> slots;
  };

  static std::size_t slot_of(RequestKind request) { return static_cast<std::size_t>(request); }
  static std::size_t slot_of(ReadWay way) {
    return kRequestNames.size() + static_cast<std::size_t>(way);
  }
  void count_slot(std::size_t slot, std::uint64_t nbytes) noexcept {
    Slot& counted = shard().slots[slot];
    counted.count.fetch_add(1, std::memory_order_relaxed);
    counted.nbytes.fetch_add(nbytes, std::memory_order_relaxed);
  }
  void add_time(std::size_t slot, std::uint64_t ns) noexcept {
    shard().slots[slot].latency.add(ns);
  }
  // The calling thread's.
  Shard& shard() noexcept;

  std::vector<Shard> shards_;  // a power of two
  std::array<std::atomic<std::uint64_t>, kErrorKindNames.size()> errors_{};
};

// One request, from when it came until this goes, which must be after the answer. A request that is
// never counted is not timed either. One thread.
class RequestTimer {
 public:
  explicit RequestTimer(RequestStats& stats) : stats_(stats) {}
  ~RequestTimer() {
    if (slot_) {
      const auto took = Clock::now() - begin_;
      stats_.add_time(*slot_,
                      static_cast<std::uint64_t>(
                          std::chrono::duration_cast<std::chrono::nanoseconds>(took).count()));
    }
  }
  RequestTimer(const RequestTimer&) = delete;
  RequestTimer& operator=(const RequestTimer&) = delete;

  // To be called once, before the request is answered.
  void count(RequestKind request) noexcept {
    stats_.count(request);
    slot_ = RequestStats::slot_of(request);
  }
  void count(ReadWay way, std::uint64_t nbytes) noexcept {
    stats_.count(way, nbytes);
    slot_ = RequestStats::slot_of(way);
  }

 private:
  using Clock = std::chrono::steady_clock;
  RequestStats& stats_;
  const Clock::time_point begin_ = Clock::now();
  std::optional<std::size_t> slot_;
};

}  // namespace npyfs
