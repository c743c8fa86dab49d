// SPDX-License-Identifier: Apache-2.0

#include "fs/verified_records.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "formats/bytes/endian.h"
#include "formats/bytes/record_set.h"
#include "formats/extents.h"
#include "fs/mutex.h"

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

// Where a format keeps its checksums together, apart from the payloads, one read brings those of
// many records; the next request of the thread is probably for the next of them.
class StoredChecksums {
 public:
  std::uint32_t read(const Checksum& checksum, const ReadWindow& window) {
    const Extent& stored = checksum.stored;
    if (window.holds(stored)) {
      return load_le<std::uint32_t>(window.bytes.data() + (stored.offset - window.offset));
    }
    const std::uint64_t payload_end = checksum.payload.offset + checksum.payload.nbytes;
    const bool beside = stored.offset >= payload_end && stored.offset - payload_end < 16;
    if (beside) {
      std::byte bytes[4];
      stored.source->read_at(stored.offset, bytes);
      return load_le<std::uint32_t>(bytes);
    }
    if (!near_.holds(stored)) {
      constexpr std::uint64_t kMostNbytes = std::uint64_t{16} << 10;
      const std::uint64_t left = stored.source->nbytes() - stored.offset;
      near_ = {};
      buffer_.resize(std::clamp(left, stored.nbytes, kMostNbytes));
      stored.source->read_at(stored.offset, buffer_);
      near_ = {stored.source, stored.offset, buffer_};
    }
    return load_le<std::uint32_t>(near_.bytes.data() + (stored.offset - near_.offset));
  }

 private:
  std::vector<std::byte> buffer_;
  ReadWindow near_;
};

std::atomic<std::uint64_t> next_id{1};

}  // namespace

struct VerifiedRecords::Impl {
  explicit Impl(Verify v) : verify(v) {}

  Bits& bits_of(const RecordTable& table) {
    // Each thread remembers the table it asked for last, so that the usual question takes no lock.
    // The id tells instances apart that have lived at one address.
    thread_local struct {
      std::uint64_t id = 0;
      const RecordTable* table = nullptr;
      Bits* bits = nullptr;
    } last;
    if (last.id != id || last.table != &table) {
      const MutexLock lock(mutex);
      std::unique_ptr<Bits>& bits = bits_by_table[&table];
      if (bits == nullptr) {
        bits = std::make_unique<Bits>(table.size());
      }
      last = {id, &table, bits.get()};
    }
    return *last.bits;
  }

  void throw_if_known_damaged(const RecordTable& table, std::uint64_t record) {
    if (!any_damaged.load(std::memory_order_acquire)) {
      return;
    }
    {
      const MutexLock lock(mutex);
      const auto known = damaged.find(&table);
      if (known == damaged.end() || !known->second.contains(record)) {
        return;
      }
      if (const auto said = texts.find({&table, record}); said != texts.end()) {
        throw Error(said->second);
      }
    }
    throw error_of(table, record, *table.checksum(record), "is wrong");
  }

  [[noreturn]] void throw_damaged(const RecordTable& table, std::uint64_t record,
                                  const Checksum& checksum, std::uint32_t found,
                                  std::uint32_t expected) {
    const Error in_full = error_of(table, record, checksum,
                                   fmt::format("is {:#010x}, expected {:#010x}", found, expected));
    {
      const MutexLock lock(mutex);
      damaged[&table].add(record);
      if (texts.size() < kMostTexts) {
        texts.emplace(std::make_pair(&table, record), in_full);
      }
    }
    any_damaged.store(true, std::memory_order_release);
    // As whoever comes later finds it: what is said of one record is one finding.
    throw_if_known_damaged(table, record);
    throw Error(in_full);
  }

  static Error error_of(const RecordTable& table, std::uint64_t record, const Checksum& checksum,
                        const std::string& finding) {
    return corrupt_at(checksum.payload.source->name(), checksum.payload.offset,
                      fmt::format("checksum of {} ({} bytes) {}; the record is damaged, restore "
                                  "the file",
                                  record_name(table, record), checksum.payload.nbytes, finding));
  }

  const Verify verify;
  std::function<void()> proceed;
  const std::uint64_t id = next_id.fetch_add(1);
  std::atomic<bool> any_damaged{false};
  Mutex mutex;  // never held while reading
  std::unordered_map<const RecordTable*, std::unique_ptr<Bits>> bits_by_table GUARDED_BY(mutex);
  std::unordered_map<const RecordTable*, RecordSet> damaged GUARDED_BY(mutex);
  // What is wrong with the first of them, in full. A disk that dies under millions of records must
  // not fill the memory: of the others it is known that their checksum is wrong.
  static constexpr std::size_t kMostTexts = 1024;
  std::map<std::pair<const RecordTable*, std::uint64_t>, Error> texts GUARDED_BY(mutex);
};

VerifiedRecords::VerifiedRecords(Verify verify) : impl_(std::make_unique<Impl>(verify)) {}
VerifiedRecords::~VerifiedRecords() = default;

void VerifiedRecords::set_proceed(std::function<void()> proceed) {
  impl_->proceed = std::move(proceed);
}

bool VerifiedRecords::known_intact(const Guard& guard) const {
  return guard.table == nullptr || impl_->verify == Verify::kNever ||
         impl_->bits_of(*guard.table).all(guard.first, guard.count);
}

void VerifiedRecords::require_intact(const Guard& guard, const ReadWindow& window) {
  if (known_intact(guard)) {
    return;
  }
  const RecordTable& table = *guard.table;
  Bits& bits = impl_->bits_of(table);
  // Kept from request to request, for one instance at a time: sources live as long as their tables.
  thread_local std::pair<std::uint64_t, StoredChecksums> kept;
  if (kept.first != impl_->id) {
    kept = {impl_->id, StoredChecksums()};
  }
  const std::uint64_t end = guard.first + guard.count;
  for (std::uint64_t record = guard.first; record < end; ++record) {
    if (bits.all(record, 1)) {
      continue;
    }
    impl_->throw_if_known_damaged(table, record);
    // One read may touch more records than there is time for, small as each of them is.
    if (impl_->proceed) {
      impl_->proceed();
    }
    if (const auto checksum = table.checksum(record)) {
      const std::uint32_t found =
          window.holds(checksum->payload)
              ? checksum_of(*checksum,
                            window.bytes.subspan(checksum->payload.offset - window.offset,
                                                 checksum->payload.nbytes))
              : read_checksum_of(*checksum, impl_->proceed);
      const std::uint32_t expected = kept.second.read(*checksum, window);
      if (found != expected) {
        // A source that has changed under us is not damage.
        checksum->payload.source->check_unchanged();
        impl_->throw_damaged(table, record, *checksum, found, expected);
      }
    }
    bits.set(record);
  }
}

}  // namespace npyfs
