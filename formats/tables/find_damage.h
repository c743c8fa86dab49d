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

// The records of a table that do not match their checksums: ascending, each once; warns of each
// kind of fault. Throws what reading throws where that is no damage.
std::vector<std::uint64_t> find_failing(const RecordTable& table, const Verifier& verifier,
                                        const std::function<void(const std::string&)>& warn);

// Metadata of a few bytes can claim any number of chunks, each of which is to be looked for.
inline constexpr std::uint64_t kMostVerifiedChunks = std::uint64_t{1} << 24;

// The damage of an array of a store. What was never written is not read. Throws kTooLarge where
// there are more than kMostVerifiedChunks in one part, and what reading throws where that is no
// damage.
FoundDamage find_damage(const StoredArray& stored, const Verifier& verifier);

}  // namespace npyfs
