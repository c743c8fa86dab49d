// SPDX-License-Identifier: Apache-2.0

#include "formats/bytes/key_order.h"

#include <fmt/format.h>

#include "formats/bytes/error.h"

namespace npyfs {

namespace {

struct ListedKey {
  const StringList* keys;
  std::string_view operator()(std::uint64_t row) const { return (*keys)[row]; }
};

KeyOrder<ListedKey> unique_order(const StringList& keys, const std::string& name) {
  KeyOrder<ListedKey> order(keys.size(), ListedKey{&keys});
  if (const auto twice = order.duplicate()) {
    throw file_error(ErrorKind::kCorrupt, name,
                     fmt::format("key '{}' stands there twice, expected each once where records "
                                 "are joined by key",
                                 printable(keys[*twice])));
  }
  return order;
}

}  // namespace

void require_unique(const StringList& keys, const std::string& name) { unique_order(keys, name); }

std::vector<std::uint64_t> match_keys(const StringList& wanted, const StringList& keys,
                                      const std::string& name) {
  const KeyOrder<ListedKey> order = unique_order(keys, name);
  std::vector<std::uint64_t> rows(wanted.size(), kNoRow);
  for (std::uint64_t i = 0; i < wanted.size(); ++i) {
    // Both are in one order as a rule.
    rows[i] = i < keys.size() && keys[i] == wanted[i] ? i : order.find(wanted[i]).value_or(kNoRow);
  }
  return rows;
}

}  // namespace npyfs
