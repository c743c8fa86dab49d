// SPDX-License-Identifier: Apache-2.0
//
// The records of one source that were found damaged while opening it. A hostile file can have
// millions: a record costs 8 bytes here, and only the first kMaxTexts have a Damage of their own.
// All others share one, which has the first one's text and no size.

#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "formats/format.h"

namespace npyfs {

// Built by one thread, then immutable.
class DamageList {
 public:
  static constexpr std::size_t kMaxTexts = 1024;

  // `record` is above all that were added before. `describe` returns the Damage; it is not asked
  // beyond the first kMaxTexts.
  template <typename Describe>
  void add(std::uint64_t record, const Describe& describe) {
    if (damages_.size() < kMaxTexts) {
      damages_.push_back(describe());
    } else if (damages_.size() == kMaxTexts) {
      damages_.push_back(Damage{summary(), std::nullopt});
    }
    records_.push_back(record);
  }

  // Null where `record` is undamaged; else valid as long as the list.
  const Damage* find(std::uint64_t record) const {
    const std::uint64_t index = lower_bound(record);
    if (index == records_.size() || records_[index] != record) {
      return nullptr;
    }
    return &damages_[std::min<std::uint64_t>(index, kMaxTexts)];
  }

  // How many records from the undamaged `record` on, of the `size` there are, come before the next
  // damaged one.
  std::uint64_t run(std::uint64_t record, std::uint64_t size) const {
    const std::uint64_t index = lower_bound(record);
    return (index == records_.size() ? size : records_[index]) - record;
  }

  // To be called once after the last add(): until then a record may cost 16 bytes.
  void shrink() { records_.shrink_to_fit(); }

  std::uint64_t size() const { return records_.size(); }
  bool empty() const { return records_.empty(); }

 private:
  std::uint64_t lower_bound(std::uint64_t record) const {
    return static_cast<std::uint64_t>(std::lower_bound(records_.begin(), records_.end(), record) -
                                      records_.begin());
  }
  Error summary() const {
    return {ErrorKind::kCorrupt, std::string(damages_.front().error.what()) +
                                     " (found first; over " + std::to_string(kMaxTexts) +
                                     " records of this file are damaged, this is one of them)"};
  }

  std::vector<std::uint64_t> records_;  // ascending
  std::deque<Damage> damages_;  // of the first kMaxTexts of them, then the one of all others
};

}  // namespace npyfs
