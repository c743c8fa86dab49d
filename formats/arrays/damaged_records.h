// SPDX-License-Identifier: Apache-2.0
//
// The records of one array that cannot be read. A hostile file can have millions: only the first
// kMaxTexts have a text of their own, and all share one copy.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "formats/bytes/error.h"
#include "formats/bytes/record_set.h"

namespace npyfs {

// Built by one thread, then immutable.
class DamagedRecords {
 public:
  static constexpr std::size_t kMaxTexts = 1024;

  // `record` is above all that were added before.
  void add(std::uint64_t record, const Error& why);
  // To be called once after the last add().
  void finish();

  // Null where `record` is undamaged; else valid as long as this.
  const Error* find(std::uint64_t record) const;
  // How many records from the undamaged `record` on, of the `size` there are, come before the next
  // damaged one.
  std::uint64_t run(std::uint64_t record, std::uint64_t size) const;

  bool empty() const { return texts_.empty(); }
  std::uint64_t size() const { return set_.size(); }
  // Not where it is empty.
  const Error& first() const { return texts_.front().second; }
  // Ascending.
  std::vector<std::uint64_t> list() const;

 private:
  RecordSet set_;
  std::vector<std::pair<std::uint64_t, Error>> texts_;  // of the first in set_
  std::optional<Error> of_the_rest_;
};

}  // namespace npyfs
