// SPDX-License-Identifier: Apache-2.0

#include "formats/tables/view_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

namespace npyfs {

namespace {

// A number has one spelling only: a view is kept by its name, and must not be kept twice.
std::optional<std::uint64_t> parse_number(std::string_view text) {
  if (text.size() > 1 && text.front() == '0') {
    return std::nullopt;
  }
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(number)
                                                                  : std::nullopt;
}

using Pair = std::pair<std::uint64_t, std::uint64_t>;

// Two numbers with `between` between them.
std::optional<Pair> parse_pair(std::string_view text, std::string_view between) {
  const std::size_t at = text.find(between);
  if (at == std::string_view::npos) {
    return std::nullopt;
  }
  const auto first = parse_number(text.substr(0, at));
  const auto second = parse_number(text.substr(at + between.size()));
  return first && second ? std::optional(Pair(*first, *second)) : std::nullopt;
}

// "0:1000".
std::optional<Bounds> parse_rows(std::string_view text) {
  const auto pair = parse_pair(text, ":");
  return pair && pair->first <= pair->second ? std::optional(Bounds{pair->first, pair->second})
                                             : std::nullopt;
}

// "3of16".
std::optional<Part> parse_part(std::string_view text) {
  const auto pair = parse_pair(text, "of");
  return pair && pair->first < pair->second && pair->second <= kMostWorldSize
             ? std::optional(Part{pair->first, pair->second})
             : std::nullopt;
}

// 0: shards.
std::optional<std::uint64_t> parse_block(std::string_view text) {
  const auto number = text == "shard" ? std::optional<std::uint64_t>(0) : parse_number(text);
  return number && (*number > 0 || text == "shard") ? number : std::nullopt;
}

std::optional<Part::Equal> parse_equal(std::string_view text) {
  return text == "drop"   ? std::optional(Part::Equal::kDrop)
         : text == "wrap" ? std::optional(Part::Equal::kWrap)
                          : std::nullopt;
}

// Whether the word is new and its value was understood.
template <typename T>
bool set_once(std::optional<T>& word, const std::optional<T>& value) {
  if (word || !value) {
    return false;
  }
  word = value;
  return true;
}

// The starts of the shards within `rows`, counted from its begin.
ShardStarts clip(const ShardStarts& shards, const Bounds& rows) {
  if (shards == nullptr || rows.size() == 0) {
    return nullptr;
  }
  auto clipped = std::make_shared<std::vector<std::uint64_t>>();
  clipped->push_back(0);
  for (const std::uint64_t start : *shards) {
    if (start > rows.begin && start < rows.end) {
      clipped->push_back(start - rows.begin);
    }
  }
  return clipped;
}

// The size of shards if all are equal (the last may be smaller); else nothing.
std::optional<std::uint64_t> equal_size(const std::vector<std::uint64_t>& starts,
                                        std::uint64_t count) {
  const std::uint64_t size = starts.size() > 1 ? starts[1] : count;
  for (std::size_t i = 0; i < starts.size(); ++i) {
    if (starts[i] != i * size) {
      return std::nullopt;
    }
  }
  return size > 0 && count - starts.back() <= size ? std::optional(size) : std::nullopt;
}

}  // namespace

RecordMap part_map(std::uint64_t count, const Part& part) {
  if (part.equal == Part::Equal::kNear) {
    // N*R div W without the product, which may not fit.
    const auto begin_of = [&](std::uint64_t rank) {
      return count / part.world_size * rank + count % part.world_size * rank / part.world_size;
    };
    return RecordMap::range({begin_of(part.rank), begin_of(part.rank + 1)});
  }
  const bool rounds_up = part.equal == Part::Equal::kWrap && count % part.world_size != 0;
  const std::uint64_t size = count / part.world_size + (rounds_up ? 1 : 0);
  return RecordMap::window(count, part.rank * size, size);
}

bool ViewWords::take(std::string_view name, std::string_view value) {
  if (name == "pad") {
    return value.empty() && !std::exchange(pad_, true);
  }
  return (name == "rows" && set_once(rows_, parse_rows(value))) ||
         (name == "shuffle" && set_once(seed_, parse_number(value))) ||
         (name == "epoch" && set_once(epoch_, parse_number(value))) ||
         (name == "block" && set_once(block_, parse_block(value))) ||
         (name == "part" && set_once(part_, parse_part(value))) ||
         (name == "equal" && set_once(equal_, parse_equal(value)));
}

std::optional<View> ViewWords::view() const {
  if (((epoch_ || block_) && !seed_) || (equal_ && !part_)) {
    return std::nullopt;
  }
  View view;
  view.rows = rows_;
  if (seed_) {
    view.shuffle = Shuffle{*seed_, epoch_.value_or(0), block_.value_or(0), block_ && *block_ == 0};
  }
  view.part = part_.value_or(Part());
  view.part.equal = equal_.value_or(Part::Equal::kNear);
  view.pad = pad_;
  return view;
}

std::string_view ViewWords::expected(std::string_view name) {
  return name == "rows" ? "A:B, two whole numbers without leading zeros, the second not smaller"
         : name == "shuffle" ? "a whole number below 2^64, without leading zeros"
         : name == "epoch"   ? "a whole number below 2^64, without leading zeros"
         : name == "block"   ? "a whole number from 1 on, without leading zeros, or shard"
         : name == "part"  ? "RofW, without leading zeros, where R is below W and W at most 1000000"
         : name == "equal" ? "drop or wrap"
                           : "";
}

std::optional<View> parse_view(std::string_view name) {
  if (!name.starts_with('@')) {
    return std::nullopt;
  }
  ViewWords words;
  for (std::size_t at = 1; at <= name.size();) {
    const std::size_t end = std::min(name.find(',', at), name.size());
    const std::string_view word = name.substr(at, end - at);
    const std::size_t equals = word.find('=');
    const bool has_value = equals != std::string_view::npos;
    if (has_value && equals + 1 == word.size()) {
      return std::nullopt;
    }
    if (!words.take(word.substr(0, equals), has_value ? word.substr(equals + 1) : "")) {
      return std::nullopt;
    }
    at = end + 1;
  }
  return words.view();
}

Bounds rows_of(const View& view, std::uint64_t count) {
  const Bounds rows = view.rows.value_or(Bounds{0, count});
  return {std::min(rows.begin, count), std::min(rows.end, count)};
}

RecordMap view_map(const View& view, std::uint64_t count,
                   const std::function<ShardStarts()>& shards) {
  const Bounds rows = rows_of(view, count);
  RecordMap map = RecordMap::range(rows);
  if (view.shuffle) {
    Shuffle shuffle = *view.shuffle;
    ShardStarts starts = shuffle.by_shard && shards ? clip(shards(), rows) : nullptr;
    // The same order by arithmetic, without memory for shards.
    if (const auto size = starts ? equal_size(*starts, rows.size()) : std::nullopt) {
      shuffle.by_shard = false;
      shuffle.block = *size;
    }
    map = map.select(RecordMap::permutation(
        std::make_shared<const Permutation>(rows.size(), shuffle, std::move(starts))));
  }
  return map.select(part_map(rows.size(), view.part));
}

View before_layout(const View& view) {
  View before;
  if (!view.shuffle) {
    before.rows = view.rows;
    before.part = view.part;
  }
  return before;
}

View after_layout(const View& view) {
  View after = view;
  if (!view.shuffle) {
    after = View();
    after.pad = view.pad;
  }
  return after;
}

std::optional<Value> part_attribute(const Part& part, const SplitCounts& counts) {
  if (part.equal == Part::Equal::kNear) {
    return std::nullopt;
  }
  const bool drops = part.equal == Part::Equal::kDrop;
  Dict records;
  for (const auto& [split, count] : counts) {
    const std::uint64_t shown = part_map(count, part).size() * part.world_size;
    set_value(records, split,
              Value{static_cast<std::int64_t>(drops ? count - shown : shown - count)});
  }
  Dict told;
  set_value(told, "rank", Value{static_cast<std::int64_t>(part.rank)});
  set_value(told, "world_size", Value{static_cast<std::int64_t>(part.world_size)});
  set_value(told, "equal", Value{std::string(drops ? "drop" : "wrap")});
  set_value(told, drops ? "left_out" : "repeated", Value{std::move(records)});
  return Value{std::move(told)};
}

}  // namespace npyfs
