// SPDX-License-Identifier: Apache-2.0

#include "formats/arrays/damaged_records.h"

#include <fmt/format.h>

#include <algorithm>

namespace npyfs {

void DamagedRecords::add(std::uint64_t record, const Error& why) {
  set_.add(record);
  if (texts_.size() < kMaxTexts) {
    texts_.emplace_back(record, why);
  }
}

void DamagedRecords::finish() {
  set_.optimize();
  texts_.shrink_to_fit();
  if (size() > texts_.size()) {
    of_the_rest_ =
        Error(ErrorKind::kCorrupt, fmt::format("{} (found first; {} records are damaged, this is "
                                               "one of them)",
                                               first().what(), size()));
  }
}

const Error* DamagedRecords::find(std::uint64_t record) const {
  if (empty() || !set_.contains(record)) {
    return nullptr;
  }
  const auto text = std::lower_bound(
      texts_.begin(), texts_.end(), record,
      [](const auto& entry, std::uint64_t wanted) { return entry.first < wanted; });
  return text != texts_.end() ? &text->second : &*of_the_rest_;
}

std::uint64_t DamagedRecords::run(std::uint64_t record, std::uint64_t size) const {
  return (empty() ? size : set_.next(record).value_or(size)) - record;
}

std::vector<std::uint64_t> DamagedRecords::list() const {
  std::vector<std::uint64_t> all;
  all.reserve(size());
  for (auto record = set_.next(0); record; record = set_.next(*record + 1)) {
    all.push_back(*record);
  }
  return all;
}

}  // namespace npyfs
