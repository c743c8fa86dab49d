// SPDX-License-Identifier: Apache-2.0
//
// The words of a view, in a directory's name (@shuffle=7,part=3of16) or as options of a mount, and
// the map that they make of a split's records.

#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/bytes/value.h"
#include "formats/tables/record_map.h"

namespace npyfs {

inline constexpr std::uint64_t kMostWorldSize = 1'000'000;

// The part with the number `rank`, from 0 on, of `world_size` parts.
struct Part {
  enum class Equal {
    kNear,  // records [N*R div W, N*(R+1) div W)
    kDrop,  // N div W records each; the last records are in no part
    kWrap,  // N div W records each, rounded up; the first records come again in the last parts
  };
  std::uint64_t rank = 0;
  std::uint64_t world_size = 1;
  Equal equal = Equal::kNear;
};

// The part of `count` rows.
RecordMap part_map(std::uint64_t count, const Part& part);

// What a view does to the records of each split, in this order.
struct View {
  std::optional<Bounds> rows;      // a range of the plain order
  std::optional<Shuffle> shuffle;  // shuffles that range
  Part part;                       // a part of the result
  bool pad = false;                // ragged arrays become as long as their longest record

  // Whether it leaves out records or changes their order.
  bool maps_records() const { return rows || shuffle || part.world_size > 1; }
  bool is_plain() const { return !maps_records() && !pad; }
};

// Collects the words of a view.
class ViewWords {
 public:
  // One of rows=A:B, shuffle=S, block=N|shard, epoch=E, part=RofW, equal=drop|wrap and pad. False
  // for any other word, a wrong value, and a word that was taken before.
  bool take(std::string_view name, std::string_view value);
  // The same as part=, for numbers that are known to be valid.
  bool take_part(const Part& part) { return !part_ && (part_ = part, true); }
  // Nothing if a word lacks the word it depends on: block and epoch need shuffle, equal needs part.
  std::optional<View> view() const;
  // What take() expects as the word's value, for messages; empty for an unknown word.
  static std::string_view expected(std::string_view name);

 private:
  std::optional<Bounds> rows_;
  std::optional<std::uint64_t> seed_;
  std::optional<std::uint64_t> epoch_;
  std::optional<std::uint64_t> block_;  // 0: shards
  std::optional<Part> part_;
  std::optional<Part::Equal> equal_;
  bool pad_ = false;
};

// "@shuffle=7,part=3of16", "@pad": each word at most once, in any order. Nothing if the name is not
// a view.
std::optional<View> parse_view(std::string_view name);

// The bounds that the view's rows= gives for `count` records.
Bounds rows_of(const View& view, std::uint64_t count);

// Which records of `count` the view shows. `shards` is called only if shards are its blocks;
// without it, all records are one shard.
RecordMap view_map(const View& view, std::uint64_t count,
                   const std::function<ShardStarts()>& shards = nullptr);

// Splits a mount's view in two: what selects records before layout, so that no others are looked
// at, and what acts on finished arrays.
View before_layout(const View& view);
View after_layout(const View& view);

// Records of each split.
using SplitCounts = std::vector<std::pair<std::string, std::uint64_t>>;

// The attribute npyfs_part for parts of equal length: which part it is, and how many records of
// each split are in no part or in several. `counts` has the splits' records before the part was
// taken. Nothing for parts that are only near-equal.
std::optional<Value> part_attribute(const Part& part, const SplitCounts& counts);

}  // namespace npyfs
