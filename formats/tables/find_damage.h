// SPDX-License-Identifier: Apache-2.0
//
// --verify=mount: whatever carries a checksum, or shows damage by being decoded, is read once.

#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "formats/bytes/fault_tally.h"
#include "formats/bytes/verifier.h"
#include "formats/record_table.h"
#include "formats/store.h"

namespace npyfs {

struct FoundDamage {
  std::uint64_t checked = 0;    // chunks, a whole .npy file being one
  FaultTally faults{"chunks"};  // of those that are damaged
};

// The records of a table that do not match their checksums: ascending, each once. Warns once for
// each kind of fault. Throws what reading throws, unless it is damage.
std::vector<std::uint64_t> find_failing(const RecordTable& table, const Verifier& verifier,
                                        const std::function<void(const std::string&)>& warn);

// A few bytes of metadata can claim any number of chunks, and each one would be looked for.
inline constexpr std::uint64_t kMostVerifiedChunks = std::uint64_t{1} << 24;

// The damage of a store's array. Chunks that were never written are not read. Throws kTooLarge for
// more than kMostVerifiedChunks in one part, and what reading throws, unless it is damage.
FoundDamage find_damage(const StoredArray& stored, const Verifier& verifier);

}  // namespace npyfs
