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

// Cuts `table` into the splits of `rule`, which is not empty. Splits are in the rule's order; with
// lists, train comes first. Each record is in exactly one. `name` is the table's name in messages.
// Throws kCorrupt if a list names a record that the table lacks, kUsage if two lists name the same
// record.
std::vector<NamedRows> cut_splits(const RecordTable& table, const SplitRule& rule,
                                  const std::string& name);

}  // namespace npyfs
