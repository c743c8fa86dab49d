// SPDX-License-Identifier: Apache-2.0
//
// --verify=mount of what a store holds: all of an array that carries a checksum, or shows damage by
// being decoded, is read once.

#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "formats/bytes/plan.h"
#include "formats/store.h"

namespace npyfs {

struct StoredDamage {
  std::uint64_t chunks = 0;   // that are damaged; a whole .npy file is one
  std::uint64_t checked = 0;  // of so many
  std::string first;          // what is wrong with the first
};

// Metadata of a few bytes can claim any number of chunks, each of which is to be looked for.
inline constexpr std::uint64_t kMostVerifiedChunks = std::uint64_t{1} << 24;

// `require_intact` throws kCorrupt for what fails its checksum and remembers what does not. What
// was never written is not read. Throws kTooLarge where there are more than kMostVerifiedChunks in
// one part, and what reading throws where that is no damage.
StoredDamage find_damage(const StoredArray& stored,
                         const std::function<void(const Guard&)>& require_intact);

}  // namespace npyfs
