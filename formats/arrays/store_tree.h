// SPDX-License-Identifier: Apache-2.0
//
// The stores of one split become directories of arrays: joined, renamed, named as files.

#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "formats/arrays/dataset.h"
#include "formats/store.h"

namespace npyfs {

// The store's main array: the store itself if it is one array, else `x`, else its only array. Null
// if none of these exists.
const StoredArray* main_array(const Group& root);

// Concatenates stores: arrays of one path are concatenated along axis 0. A group that only some
// stores have is taken as it is. The first store's attributes are kept. `names` are for messages.
// Throws kUnsupported where one lacks an array that another has in the same group.
Group concatenate_stores(const std::vector<StorePtr>& stores, const std::vector<std::string>& names,
                         const Verifier& verifier);

struct StoreTree {
  Split split;                       // its arrays and groups
  std::set<std::string> names_seen;  // of arrays, before --name
};

// The sources of one split, all of them stores. Those with an ARRAY give their main array, whose
// rows must be as many as the first source's. `is_root` where the split is the mount's top. Throws
// kUsage and kUnsupported for what cannot be joined or named.
StoreTree build_store_tree(const std::vector<const OpenedSource*>& sources, bool is_root,
                           const DatasetOptions& options,
                           const std::function<void(const std::string&)>& warn);

// A store's arrays as a table with a record for each row, to be joined with records: its main array
// under the name x where the source has an ARRAY, else all arrays at its root. Throws kUnsupported
// where that cannot be.
std::shared_ptr<const RecordTable> rows_of_store(const OpenedSource& source,
                                                 const Verifier& verifier);

}  // namespace npyfs
