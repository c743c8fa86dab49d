// SPDX-License-Identifier: Apache-2.0

#include "formats/tables/find_damage.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "formats/bytes/byte_source.h"
#include "formats/bytes/error.h"
#include "formats/bytes/fault_tally.h"
#include "formats/bytes/strict_reader.h"
#include "formats/chunk_grid.h"

namespace npyfs {

namespace {

// Checks one thing after another and notes the faults.
class DamageSearch {
 public:
  // `unit` is what is looked at, in the plural.
  DamageSearch(const Verifier& verifier, std::string unit)
      : verifier_(verifier), faults_(std::move(unit)) {}

  bool is_intact(const Guard& guard) {
    return is_good([&] { verifier_.require_intact(guard); });
  }
  // False if `look` throws damage.
  template <typename Look>
  bool is_good(const Look& look) {
    try {
      look();
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kCorrupt && error.kind() != ErrorKind::kUnsupported) {
        throw;
      }
      faults_.add(error);
      return false;
    }
    return true;
  }

  const Verifier& verifier() const { return verifier_; }
  const FaultTally& faults() const { return faults_; }

 private:
  const Verifier& verifier_;
  FaultTally faults_;
};

// Looks for the records of one stored unit that fail, many at a time while all are intact.
class RecordSearch {
 public:
  // Leaves out what is in `failing`, and adds what it finds.
  RecordSearch(DamageSearch& search, std::set<std::uint64_t>& failing)
      : search_(search), failing_(failing) {}

  void add(std::uint64_t record, const Guard& guard) {
    const bool continues = guard.checksums == batch_.checksums &&
                           guard.first == batch_.first + batch_.count &&
                           record == first_record_ + batch_.count && batch_.count < kMaxBatch;
    if (continues && guard.count == 1) {
      ++batch_.count;
      return;
    }
    finish();
    batch_ = guard;
    first_record_ = record;
  }

  // To be called after the last record.
  void finish() {
    if (!search_.verifier().is_intact(batch_)) {
      for (std::uint64_t i = 0; i < batch_.count; ++i) {
        if (!failing_.contains(first_record_ + i) &&
            !search_.is_intact({batch_.checksums, batch_.first + i, 1})) {
          failing_.insert(first_record_ + i);
        }
      }
    }
    batch_ = {};
  }

 private:
  static constexpr std::uint64_t kMaxBatch = 4096;

  DamageSearch& search_;
  std::set<std::uint64_t>& failing_;
  Guard batch_;
  std::uint64_t first_record_ = 0;
};

// Looks at the parts of one stored array.
class StoredSearch {
 public:
  explicit StoredSearch(const Verifier& verifier)
      : search_(verifier, "chunks"), reader_(verifier) {}

  void look_at(const StoredNpy& npy) {
    if (npy.guarded_by != nullptr) {
      ++checked_;
      search_.is_intact(npy.guard());
    } else if (npy.storage != "mapped") {
      ++checked_;
      search_.is_good([&] { read_all(npy); });
    }
  }

  // `sources` are the array's.
  void look_at(const ChunkGrid& grid, const std::vector<SourcePtr>& sources) {
    if (grid.chunk_count() > kMostVerifiedChunks) {
      throw file_error(ErrorKind::kTooLarge, sources.front()->name(),
                       fmt::format("the array has {} chunks, expected at most {} to be verified at "
                                   "mount; mount it without --verify=mount",
                                   grid.chunk_count(), kMostVerifiedChunks));
    }
    for (std::uint64_t chunk = 0; chunk < grid.chunk_count(); ++chunk) {
      const ChunkPlace place = grid.locate(chunk);
      if (place.kind == ChunkPlace::Kind::kMapped && place.guard.checksums != nullptr) {
        ++checked_;
        search_.is_intact(place.guard);
      } else if (place.kind == ChunkPlace::Kind::kDecoded && grid.is_stored()) {
        ++checked_;
        search_.is_good([&] { require_good(grid, chunk); });
      } else if (place.kind == ChunkPlace::Kind::kDamaged) {
        ++checked_;
        search_.is_good([&] { throw Error(place.damage->error); });
      }
    }
  }

  FoundDamage found() const { return {checked_, search_.faults()}; }

 private:
  static constexpr std::size_t kReadNbytes = std::size_t{4} << 20;

  // What is decoded on the way checks itself.
  void read_all(const StoredNpy& npy) {
    const PlanRead plan_read = [&](ByteRange range, Plan& plan) {
      plan.add_extent(*npy.source, npy.data_offset() + range.begin, range.nbytes(), npy.guard());
    };
    std::vector<std::byte> bytes(std::min<std::uint64_t>(npy.data_nbytes(), kReadNbytes));
    for (std::uint64_t at = 0; at < npy.data_nbytes(); at += bytes.size()) {
      bytes.resize(std::min<std::uint64_t>(npy.data_nbytes() - at, kReadNbytes));
      reader_.read(plan_read, at, bytes);
    }
  }

  void require_good(const ChunkGrid& grid, std::uint64_t chunk) {
    bool was_written = false;
    reader_.decode([&](DecodeContext& context) { was_written = grid.was_written(chunk, context); });
    if (was_written) {
      reader_.require_good(grid, chunk);
    }
  }

  DamageSearch search_;
  StrictReader reader_;
  std::uint64_t checked_ = 0;
};

}  // namespace

std::vector<std::uint64_t> find_failing(const RecordTable& table, const Verifier& verifier,
                                        const std::function<void(const std::string&)>& warn) {
  DamageSearch search(verifier, "records");
  std::set<std::uint64_t> failing;
  for (const StoredUnit& unit : table.stored()) {
    RecordSearch records(search, failing);
    for (std::uint64_t record = 0; record < table.size(); ++record) {
      if (table.damage(record) == nullptr) {
        records.add(record, unit.bytes->guard(record));
      }
    }
    records.finish();
  }
  search.faults().for_each([&](const std::string& text, std::uint64_t count) {
    warn(fmt::format("{} ({} of {} records fail)", text, count, table.size()));
  });
  return {failing.begin(), failing.end()};
}

FoundDamage find_damage(const StoredArray& stored, const Verifier& verifier) {
  StoredSearch search(verifier);
  for (const ArrayPart& part : stored.parts) {
    if (const auto* npy = std::get_if<StoredNpy>(&part)) {
      search.look_at(*npy);
    } else {
      search.look_at(*std::get<std::shared_ptr<const ChunkGrid>>(part), stored.sources);
    }
  }
  return search.found();
}

}  // namespace npyfs
