// SPDX-License-Identifier: Apache-2.0

#include "fs/verified_records.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <map>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "formats/bytes/record_set.h"
#include "threads/mutex.h"

namespace npyfs {

namespace {

// One bit a record, of any number of records: a table may still grow while it is asked about. Any
// thread.
class Bits {
 public:
  Bits() = default;
  Bits(const Bits&) = delete;
  Bits& operator=(const Bits&) = delete;
  ~Bits() {
    for (const auto& words : words_) {
      delete[] words.load(std::memory_order_relaxed);
    }
  }

  bool all(std::uint64_t first, std::uint64_t count) const {
    const std::uint64_t end = first + count;
    while (first < end) {
      const std::uint64_t bit = first % 64;
      const std::uint64_t n = std::min<std::uint64_t>(64 - bit, end - first);
      const std::uint64_t mask = (n == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << n) - 1) << bit;
      const Place place = place_of(first);
      const Word* words = words_[place.array].load(std::memory_order_acquire);
      if (words == nullptr || (words[place.word].load(std::memory_order_acquire) & mask) != mask) {
        return false;
      }
      first += n;
    }
    return true;
  }

  void set(std::uint64_t record) {
    const Place place = place_of(record);
    Word* words = words_[place.array].load(std::memory_order_acquire);
    if (words == nullptr) {
      auto made = std::make_unique<Word[]>(place.array == 0 ? kFirst : begin_of(place.array));
      if (words_[place.array].compare_exchange_strong(words, made.get(),
                                                      std::memory_order_acq_rel)) {
        words = made.release();
      }
    }
    words[place.word].fetch_or(std::uint64_t{1} << (record % 64), std::memory_order_release);
  }

 private:
  using Word = std::atomic<std::uint64_t>;
  struct Place {
    std::size_t array;
    std::uint64_t word;  // in the array
  };

  // The arrays have 64, 64, 128, 256... words, so that none ever moves.
  static constexpr std::uint64_t kFirst = 64;
  static std::uint64_t begin_of(std::size_t array) { return kFirst << (array - 1); }
  static Place place_of(std::uint64_t record) {
    const std::uint64_t word = record / 64;
    const auto array = static_cast<std::size_t>(std::bit_width(word / kFirst));
    return {array, array == 0 ? word : word - begin_of(array)};
  }

  std::array<std::atomic<Word*>, 64> words_{};
};

}  // namespace

struct VerifiedRecords::Impl {
  explicit Impl(Verify v) : verify(v) {}

  Bits& bits_of(const Checksums& checksums) {
    // Each thread remembers what it asked for last, so that the usual question takes no lock.
    thread_local struct {
      std::uint64_t instance = 0;
      std::uint64_t checksums = 0;
      Bits* bits = nullptr;
    } last;
    if (last.instance != serial.value() || last.checksums != checksums.serial()) {
      const MutexLock lock(mutex);
      std::unique_ptr<Bits>& bits = bits_by_serial[checksums.serial()];
      if (bits == nullptr) {
        bits = std::make_unique<Bits>();
      }
      last = {serial.value(), checksums.serial(), bits.get()};
    }
    return *last.bits;
  }

  std::optional<Error> known_fault(const Checksums& checksums, std::uint64_t record) {
    if (!any_damaged.load(std::memory_order_acquire)) {
      return std::nullopt;
    }
    {
      const MutexLock lock(mutex);
      const auto known = damaged.find(checksums.serial());
      if (known == damaged.end() || !known->second.contains(record)) {
        return std::nullopt;
      }
      if (const auto said = texts.find({checksums.serial(), record}); said != texts.end()) {
        return said->second;
      }
    }
    return mismatch_error(checksums, record);
  }

  // Each record has one fault text: later readers get the first reader's.
  std::optional<Error> remember(const Checksums& checksums, std::uint64_t record,
                                const Error& in_full) {
    {
      const MutexLock lock(mutex);
      damaged[checksums.serial()].add(record);
      if (texts.size() < kMostTexts) {
        texts.emplace(std::make_pair(checksums.serial(), record), in_full);
      }
    }
    any_damaged.store(true, std::memory_order_release);
    return known_fault(checksums, record);
  }

  const Verify verify;
  std::function<void()> proceed;
  const Serial serial;
  std::atomic<bool> any_damaged{false};
  Mutex mutex;  // never held while reading
  std::unordered_map<std::uint64_t, std::unique_ptr<Bits>> bits_by_serial GUARDED_BY(mutex);
  std::unordered_map<std::uint64_t, RecordSet> damaged GUARDED_BY(mutex);
  // What is wrong with the first of them, in full. A disk that dies under millions of records must
  // not fill the memory: of the others it is known that their checksum is wrong.
  static constexpr std::size_t kMostTexts = 1024;
  std::map<std::pair<std::uint64_t, std::uint64_t>, Error> texts GUARDED_BY(mutex);
};

VerifiedRecords::VerifiedRecords(Verify verify) : impl_(std::make_unique<Impl>(verify)) {}
VerifiedRecords::~VerifiedRecords() = default;

void VerifiedRecords::set_proceed(std::function<void()> proceed) {
  impl_->proceed = std::move(proceed);
}

bool VerifiedRecords::known_intact(const Guard& guard) const {
  return guard.checksums == nullptr || !verifies() ||
         impl_->bits_of(*guard.checksums).all(guard.first, guard.count);
}

bool VerifiedRecords::verifies() const { return impl_->verify != Verify::kNever; }

std::optional<Error> VerifiedRecords::find_fault(const Guard& guard,
                                                 const ReadWindow& window) const {
  if (known_intact(guard)) {
    return std::nullopt;
  }
  const Checksums& checksums = *guard.checksums;
  Bits& bits = impl_->bits_of(checksums);
  const std::uint64_t end = guard.first + guard.count;
  for (std::uint64_t record = guard.first; record < end; ++record) {
    if (bits.all(record, 1)) {
      continue;
    }
    if (auto known = impl_->known_fault(checksums, record)) {
      return known;
    }
    // One read may touch more records than there is time for, small as each of them is.
    if (impl_->proceed) {
      impl_->proceed();
    }
    if (const auto fault = find_mismatch(checksums, record, window, impl_->proceed)) {
      return impl_->remember(checksums, record, *fault);
    }
    bits.set(record);
  }
  return std::nullopt;
}

}  // namespace npyfs
