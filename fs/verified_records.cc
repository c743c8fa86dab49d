// SPDX-License-Identifier: Apache-2.0

#include "fs/verified_records.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "formats/bytes/record_set.h"
#include "threads/mutex.h"

namespace npyfs {

namespace {

// One bit a record.
class Bits {
 public:
  explicit Bits(std::uint64_t count) : words_(count / 64 + 1) {}

  bool all(std::uint64_t first, std::uint64_t count) const {
    const std::uint64_t end = first + count;
    while (first < end) {
      const std::uint64_t bit = first % 64;
      const std::uint64_t n = std::min<std::uint64_t>(64 - bit, end - first);
      const std::uint64_t mask = (n == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << n) - 1) << bit;
      if ((words_[first / 64].load(std::memory_order_acquire) & mask) != mask) {
        return false;
      }
      first += n;
    }
    return true;
  }

  void set(std::uint64_t index) {
    words_[index / 64].fetch_or(std::uint64_t{1} << (index % 64), std::memory_order_release);
  }

 private:
  std::vector<std::atomic<std::uint64_t>> words_;
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
        bits = std::make_unique<Bits>(checksums.size());
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

  // What is said of one record is one finding: whoever finds it first says what whoever comes later
  // is told.
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
