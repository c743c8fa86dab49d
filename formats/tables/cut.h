// SPDX-License-Identifier: Apache-2.0
//
// One split cut into several.

#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "formats/record_table.h"
#include "formats/tables/record_map.h"

namespace npyfs {

// How one split becomes several. At most one of `shares` and `lists` is given.
struct SplitRule {
  // --split: name and share of the records, which add up to 1. A record's key (its index where
  // there are none) decides, so that it stays where it is when others are added.
  std::vector<std::pair<std::string, double>> shares;
  std::uint64_t seed = 0;
  // --split-list: name and keys (indexes where there are none). The rest is train.
  std::vector<std::pair<std::string, std::vector<std::string>>> lists;

  bool empty() const { return shares.empty() && lists.empty(); }
};

struct NamedRows {
  std::string split;
  RecordMap rows;
};

// The splits that `rule`, which is not empty, makes of `table`: in its order, train first for
// lists; each record in exactly one. `name` is the table's in messages. Throws kCorrupt where a
// list names what the table does not have, kUsage where two lists name the same.
std::vector<NamedRows> cut_splits(const RecordTable& table, const SplitRule& rule,
                                  const std::string& name);

}  // namespace npyfs
