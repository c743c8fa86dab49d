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
  return kind != kinds_.end() ? &*kind->shared : nullptr;
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

void DamageList::write(PageWriter& page) const {
  page.number(size_);
  if (size_ == 0) {
    return;
  }
  set_.write(page);
  page.array(std::span(own_));
  for (const Damage& damage : damages_) {
    damage.write(page);
  }
  page.number(kinds_.size());
  for (const Kind& kind : kinds_) {
    page.flag(kind.shared.has_value());
    if (kind.shared) {
      kind.others.write(page);
      kind.shared->write(page);
    }
  }
}

DamageList DamageList::read(PageReader& page) {
  DamageList list;
  list.size_ = page.number();
  if (list.size_ == 0) {
    return list;
  }
  list.set_ = RecordSet::read(page);
  const PageArray<std::uint64_t> own = page.array<std::uint64_t>();
  list.own_.assign(own.begin(), own.end());
  std::uint64_t found = own.size();
  for (std::size_t i = 0; i < own.size(); ++i) {
    list.damages_.push_back(Damage::read(page));
  }
  for (std::uint64_t left = page.number(FaultKinds::kMost + 1); left > 0; --left) {
    if (page.flag()) {
      Kind& kind = list.kinds_.emplace_back();
      kind.others = RecordSet::read(page);
      kind.shared = Damage::read(page);
      found += kind.others.size();
    }
  }
  PageReader::require(found == list.size_ && list.set_.size() == list.size_);
  return list;
}

Damage DamageList::shared_by_others(const Error& first) {
  static const std::string kAddition =
      fmt::format(" (found first; over {} records are damaged, this is one of them)", kMaxTexts);
  // One that is shared already says so.
  const bool said = std::string_view(first.what()).ends_with(kAddition);
  return {first.wrapped("", said ? "" : kAddition), std::nullopt};
}

}  // namespace npyfs
