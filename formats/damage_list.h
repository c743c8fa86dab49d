// SPDX-License-Identifier: Apache-2.0
//
// The records of one source, or of one array, that cannot be read. A hostile file can have
// millions: only the first kMaxTexts, and behind them the first of each kind of fault, have a
// Damage of their own. The others of a kind share one, which has the text of the kind's first and
// no size.

#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string_view>
#include <vector>

#include "formats/bytes/fault_tally.h"
#include "formats/bytes/record_set.h"
#include "formats/column.h"

namespace npyfs {

// Built by one thread, then immutable.
class DamageList {
 public:
  static constexpr std::size_t kMaxTexts = 1024;

  // `record` is above all that were added before. `said` tells the kind of its fault (FaultKinds):
  // an Error's said(), or any short text that costs less than describing the record. `describe`
  // returns the Damage; it is asked only where the record is to have its own.
  template <typename Describe>
  void add(std::uint64_t record, std::string_view said, const Describe& describe) {
    if (add_record(record, said)) {
      damages_.push_back(describe());
    }
  }
  // To be called once after the last add(): makes it small.
  void shrink();

  // Null where `record` is undamaged; else valid as long as the list.
  const Damage* find(std::uint64_t record) const;
  // How many records from the undamaged `record` on, of the `size` there are, come before the next
  // damaged one.
  std::uint64_t run(std::uint64_t record, std::uint64_t size) const;

  std::uint64_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  // Ascending.
  std::vector<std::uint64_t> list() const;

  void write(PageWriter& page) const;
  // Nothing can be added to it. Throws kCorrupt where the page holds none.
  static DamageList read(PageReader& page);

 private:
  struct Kind {
    std::size_t first = 0;         // index into damages_
    RecordSet others;              // that have no Damage of their own
    std::optional<Damage> shared;  // theirs
  };

  // Whether it is to have its own Damage.
  bool add_record(std::uint64_t record, std::string_view said);
  static Damage shared_by_others(const Error& first);

  RecordSet set_;
  std::uint64_t size_ = 0;
  std::vector<std::uint64_t> own_;  // records with a Damage of their own, ascending
  std::deque<Damage> damages_;      // theirs
  FaultKinds numbers_;
  std::deque<Kind> kinds_;  // by number; all that there is no number for are one
};

}  // namespace npyfs
