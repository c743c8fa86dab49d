// SPDX-License-Identifier: Apache-2.0
//
// Rows found by their keys.

#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "formats/bytes/string_list.h"

namespace npyfs {

// Rows sorted by key, for binary search: 8 bytes a row. `KeyAt` gives the key of a row. Immutable
// once made.
template <typename KeyAt>
class KeyOrder {
 public:
  KeyOrder(std::uint64_t size, KeyAt key_at) : key_at_(std::move(key_at)), order_(size) {
    std::iota(order_.begin(), order_.end(), std::uint64_t{0});
    const auto before = [&](std::uint64_t a, std::uint64_t b) { return key_at_(a) < key_at_(b); };
    if (!std::is_sorted(order_.begin(), order_.end(), before)) {
      std::sort(order_.begin(), order_.end(), before);
    }
  }

  // A row whose key another has too.
  std::optional<std::uint64_t> duplicate() const {
    const auto twice = std::adjacent_find(
        order_.begin(), order_.end(),
        [&](std::uint64_t a, std::uint64_t b) { return key_at_(a) == key_at_(b); });
    return twice != order_.end() ? std::optional(*twice) : std::nullopt;
  }

  template <typename Key>
  std::optional<std::uint64_t> find(const Key& key) const {
    const auto at = std::partition_point(order_.begin(), order_.end(),
                                         [&](std::uint64_t row) { return key_at_(row) < key; });
    return at != order_.end() && key_at_(*at) == key ? std::optional(*at) : std::nullopt;
  }

 private:
  KeyAt key_at_;
  std::vector<std::uint64_t> order_;
};

// Throws kCorrupt where one of `keys` stands there twice; `name` is what messages call them.
void require_unique(const StringList& keys, const std::string& name);

// For each key of `wanted` its row in `keys`, kNoRow where it has none. Throws as require_unique.
constexpr std::uint64_t kNoRow = UINT64_MAX;
std::vector<std::uint64_t> match_keys(const StringList& wanted, const StringList& keys,
                                      const std::string& name);

}  // namespace npyfs
