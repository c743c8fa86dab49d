// SPDX-License-Identifier: Apache-2.0

#include "formats/arrays/store_attributes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "formats/arrays/recordings.h"
#include "formats/arrays/stored_array.h"
#include "formats/store.h"

namespace npyfs {

namespace {

using Warn = std::function<void(const std::string&)>;

// Rows that the store adds to x of the split.
std::uint64_t rows_of_split(const OpenedSource& source, const Store& store,
                            const std::string& split) {
  const Group* group = &store.root;
  if (source.split != split) {
    const auto found = std::find_if(store.root.groups.begin(), store.root.groups.end(),
                                    [&](const Group& inner) { return inner.name == split; });
    if (!source.split.empty() || found == store.root.groups.end()) {
      return 0;
    }
    group = &*found;
  }
  const auto x = std::find_if(group->arrays.begin(), group->arrays.end(),
                              [](const StoredArray& array) { return array.name == "x"; });
  return x != group->arrays.end() ? row_count(*make_stored_array(*x, x->name)) : 0;
}

class AttributeGatherer {
 public:
  AttributeGatherer(const std::vector<OpenedSource>& sources, const Warn& warn)
      : sources_(sources), warn_(warn) {}

  Dict gather() {
    find_splits();
    for (const OpenedSource& source : sources_) {
      for (const StorePtr& store : source.stores) {
        for (const auto& [name, value] : store->root.attributes) {
          if (splits_.count(recordings_split(name)) == 0) {
            add(name, value, source);
          }
        }
        for (const std::string& split : splits_) {
          add_recordings(split, source, *store);
        }
      }
    }
    return std::move(all_);
  }

 private:
  // Finds the splits whose recordings some store names.
  void find_splits() {
    for (const OpenedSource& source : sources_) {
      for (const StorePtr& store : source.stores) {
        for (const auto& [name, value] : store->root.attributes) {
          const std::string split = recordings_split(name);
          if (!split.empty() && has_recordings(store->root.attributes, split)) {
            splits_.insert(split);
          }
        }
      }
    }
  }

  void add(const std::string& name, const Value& value, const OpenedSource& source) {
    std::string printed = print_json(value);
    const auto [at, is_new] = seen_.try_emplace(name, printed, source.text);
    if (is_new) {
      set_value(all_, name, value);
    } else if (at->second.first != printed) {
      warn_(fmt::format("attribute {} differs in {} and {}; that of the first is shown", name,
                        at->second.second, source.text));
    }
  }

  void add_recordings(const std::string& split, const OpenedSource& source, const Store& store) {
    // A source that is joined row by row adds no rows.
    const std::uint64_t rows = source.array.empty() ? rows_of_split(source, store, split) : 0;
    const auto at = rows_.try_emplace(split, 0).first;
    if (at->second == 0) {
      take_recordings(split, store.root.attributes, rows);
    } else if (rows > 0 && !append_recordings(all_, store.root.attributes, split, at->second)) {
      warn_(unjoined_recordings(split));
    }
    at->second += rows;
  }

  // For a store without rows before it. A store with rows wins over stores without.
  void take_recordings(const std::string& split, const Dict& attributes, std::uint64_t rows) {
    if (rows > 0) {
      drop_recordings(all_, split);
    }
    if (has_recordings(all_, split)) {
      return;
    }
    for (const auto& [name, value] : attributes) {
      if (recordings_split(name) == split) {
        set_value(all_, name, value);
      }
    }
  }

  const std::vector<OpenedSource>& sources_;
  const Warn& warn_;
  Dict all_;
  std::set<std::string> splits_;
  std::map<std::string, std::pair<std::string, std::string>> seen_;  // name -> value, whose
  std::map<std::string, std::uint64_t> rows_;                        // of each split so far
};

}  // namespace

Dict gather_attributes(const std::vector<OpenedSource>& sources, const Warn& warn) {
  return AttributeGatherer(sources, warn).gather();
}

}  // namespace npyfs
