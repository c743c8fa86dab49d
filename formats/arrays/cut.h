// SPDX-License-Identifier: Apache-2.0
//
// Which records a split shows: one split cut into several, and one rank's part of each.

#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "formats/arrays/selected_table.h"

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

// The W-th part number R, from 0 on: records [N*R div W, N*(R+1) div W).
inline constexpr std::uint64_t kMostWorldSize = 1'000'000;
struct Part {
  std::uint64_t rank = 0;
  std::uint64_t world_size = 1;
};

struct NamedRows {
  std::string split;
  Rows rows;
};

// The splits that `rule`, which is not empty, makes of `table`: in its order, train first for
// lists; each record in exactly one. `name` is the table's in messages. Throws kCorrupt where a
// list names what the table does not have, kUsage where two lists name the same.
std::vector<NamedRows> cut_splits(const RecordTable& table, const SplitRule& rule,
                                  const std::string& name);

struct Bounds {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

// The part's records of `count`.
Bounds part_bounds(std::uint64_t count, const Part& part);
Rows part_rows(std::uint64_t count, const Part& part);

}  // namespace npyfs
