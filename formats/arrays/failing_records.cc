// SPDX-License-Identifier: Apache-2.0

#include "formats/arrays/failing_records.h"

#include <fmt/format.h>

#include <algorithm>

#include "formats/bytes/error.h"

namespace npyfs {

namespace {

using RequireIntact = std::function<void(const Guard&)>;
using Warn = std::function<void(const std::string&)>;

// Looks for the records of one stored unit that fail, many at a time while all are intact.
class FailureSearch {
 public:
  FailureSearch(const RequireIntact& require_intact, std::vector<std::uint64_t>& failing,
                std::string& first_text)
      : require_intact_(require_intact), failing_(failing), first_text_(first_text) {}

  void add(std::uint64_t record, const Guard& guard) {
    const bool continues = guard.table == batch_.table &&
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
    if (batch_.table != nullptr && fails(batch_)) {
      for (std::uint64_t i = 0; i < batch_.count; ++i) {
        if (fails({batch_.table, batch_.first + i, 1})) {
          failing_.push_back(first_record_ + i);
        }
      }
    }
    batch_ = {};
  }

 private:
  static constexpr std::uint64_t kMaxBatch = 4096;

  bool fails(const Guard& guard) const {
    try {
      require_intact_(guard);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kCorrupt) {
        throw;
      }
      if (first_text_.empty()) {
        first_text_ = error.what();
      }
      return true;
    }
    return false;
  }

  const RequireIntact& require_intact_;
  std::vector<std::uint64_t>& failing_;
  std::string& first_text_;
  Guard batch_;
  std::uint64_t first_record_ = 0;
};

}  // namespace

std::vector<std::uint64_t> find_failing(const RecordTable& table,
                                        const RequireIntact& require_intact, const Warn& warn) {
  std::vector<std::uint64_t> failing;
  std::string first;
  for (const StoredUnit& unit : table.stored()) {
    FailureSearch search(require_intact, failing, first);
    for (std::uint64_t record = 0; record < table.size(); ++record) {
      if (table.damage(record) == nullptr) {
        search.add(record, unit.bytes->guard(record));
      }
    }
    search.finish();
  }
  std::sort(failing.begin(), failing.end());
  failing.erase(std::unique(failing.begin(), failing.end()), failing.end());
  if (!failing.empty()) {
    warn(fmt::format("{} ({} of {} records fail)", first, failing.size(), table.size()));
  }
  return failing;
}

}  // namespace npyfs
