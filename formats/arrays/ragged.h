// SPDX-License-Identifier: Apache-2.0
//
// Ragged arrays of stores. NAME holds the rows of all records, one after another; NAME_offsets says
// where each record begins. A store marks them by these names alone, so the numbers are checked.

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "formats/arrays/array.h"
#include "formats/arrays/items.h"
#include "formats/column.h"
#include "formats/store.h"

namespace npyfs {

inline constexpr std::string_view kOffsetsEnd = "_offsets";

// Both arrays, the values in C order. Immutable; shared by those who show one of them.
struct RaggedPair {
  ArrayPtr values;
  ArrayPtr offsets;
  std::string name;          // of the values, for messages
  const Verifier& verifier;  // with which the offsets are read
};

// Returns the offsets of a pair: read_offsets(), or a copy that was read before.
using FindOffsets = std::function<OffsetsPtr(const std::shared_ptr<const RaggedPair>& pair)>;

// The offsets beside the array `name` in `group`: integers of one axis, where it has an axis
// itself. Null where there are none.
const StoredArray* find_offsets(const Group& group, const std::string& name);

// The pair of the array and its offsets, in C order. `verifier` must outlive it.
std::shared_ptr<const RaggedPair> make_ragged_pair(const StoredArray& values,
                                                   const StoredArray& offsets,
                                                   const std::string& name,
                                                   const Verifier& verifier);

// Reads and verifies the offsets, 8 bytes a record. Throws kUnsupported, naming the array, if they
// are not valid offsets of the values. Also throws what reading throws.
OffsetsPtr read_offsets(const RaggedPair& pair);

// int64 [N + 1] in memory, as part of a store.
ArrayPart offsets_part(const std::vector<std::int64_t>& offsets, const std::string& name);

}  // namespace npyfs
