// SPDX-License-Identifier: Apache-2.0
//
// The records of one source, or of one array, that cannot be read. A hostile file can have
// millions: only the first kMaxTexts have a Damage of their own. All others share one, which has
// the first one's text and no size.

#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "formats/bytes/record_set.h"
#include "formats/column.h"

namespace npyfs {

// Built by one thread, then immutable.
class DamageList {
 public:
  static constexpr std::size_t kMaxTexts = 1024;

  // `record` is above all that were added before. `describe` returns the Damage; it is not asked
  // beyond the first kMaxTexts.
  template <typename Describe>
  void add(std::uint64_t record, const Describe& describe) {
    if (first_.size() < kMaxTexts) {
      first_.push_back(record);
      damages_.push_back(describe());
    } else if (first_.size() == size_) {
      damages_.push_back(of_the_rest());
    }
    set_.add(record);
    ++size_;
  }
  // To be called once after the last add(): makes it small.
  void shrink() { set_.optimize(); }

  // Null where `record` is undamaged; else valid as long as the list.
  const Damage* find(std::uint64_t record) const;
  // How many records from the undamaged `record` on, of the `size` there are, come before the next
  // damaged one.
  std::uint64_t run(std::uint64_t record, std::uint64_t size) const;

  std::uint64_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  // Not where it is empty.
  const Damage& first() const { return damages_.front(); }
  // Ascending.
  std::vector<std::uint64_t> list() const;

 private:
  Damage of_the_rest() const;

  RecordSet set_;
  std::uint64_t size_ = 0;
  std::vector<std::uint64_t> first_;  // kMaxTexts at most
  std::deque<Damage> damages_;        // of first_, then the one of all others
};

}  // namespace npyfs
