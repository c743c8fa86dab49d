// SPDX-License-Identifier: Apache-2.0

#include "formats/damage_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace npyfs {

bool DamageList::add_record(std::uint64_t record, std::string_view said) {
  const std::size_t number = numbers_.number_of(said);
  const bool is_new = number == kinds_.size();
  const bool has_own = is_new || size_ < kMaxTexts;
  if (is_new) {
    kinds_.emplace_back().first = own_.size();
  }
  if (has_own) {
    own_.push_back(record);
  } else {
    Kind& kind = kinds_[number];
    if (!kind.shared) {
      kind.shared = shared_by_others(damages_[kind.first].error);
    }
    kind.others.add(record);
  }
  set_.add(record);
  ++size_;
  return has_own;
}

void DamageList::shrink() {
  set_.optimize();
  for (Kind& kind : kinds_) {
    kind.others.optimize();
  }
}

const Damage* DamageList::find(std::uint64_t record) const {
  if (empty() || !set_.contains(record)) {
    return nullptr;
  }
  const auto at = std::lower_bound(own_.begin(), own_.end(), record);
  if (at != own_.end() && *at == record) {
    return &damages_[static_cast<std::size_t>(at - own_.begin())];
  }
  const auto kind = std::find_if(kinds_.begin(), kinds_.end(),
                                 [&](const Kind& k) { return k.others.contains(record); });
  return &*kind->shared;
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

Damage DamageList::shared_by_others(const Error& first) {
  static const std::string kAddition =
      fmt::format(" (found first; over {} records are damaged, this is one of them)", kMaxTexts);
  // One that is shared already says so.
  const bool said = std::string_view(first.what()).ends_with(kAddition);
  return {first.wrapped("", said ? "" : kAddition), std::nullopt};
}

}  // namespace npyfs
