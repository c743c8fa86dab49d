// SPDX-License-Identifier: Apache-2.0

#include "formats/damage_list.h"

#include <fmt/format.h>

#include <algorithm>

namespace npyfs {

const Damage* DamageList::find(std::uint64_t record) const {
  if (empty() || !set_.contains(record)) {
    return nullptr;
  }
  const auto at = std::lower_bound(first_.begin(), first_.end(), record);
  return &damages_[static_cast<std::size_t>(at - first_.begin())];
}

std::uint64_t DamageList::run(std::uint64_t record, std::uint64_t size) const {
  return (empty() ? size : set_.next(record).value_or(size)) - record;
}

std::vector<std::uint64_t> DamageList::list() const {
  std::vector<std::uint64_t> all;
  all.reserve(size_);
  for (auto record = set_.next(0); record; record = set_.next(*record + 1)) {
    all.push_back(*record);
  }
  return all;
}

Damage DamageList::of_the_rest() const {
  return {Error(ErrorKind::kCorrupt,
                fmt::format("{} (found first; over {} records are damaged, this is one of them)",
                            first().error.what(), kMaxTexts)),
          std::nullopt};
}

}  // namespace npyfs
