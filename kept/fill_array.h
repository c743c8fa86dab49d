// SPDX-License-Identifier: Apache-2.0
//
// Fills what a kept array lacks, from its first block to its last, ahead of readers.

#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "kept/kept_array.h"

namespace npyfs {

// Fills `out` with the bytes of the array file from `offset` on. False, or an Error: they cannot be
// had (a damaged record), and no block that they lie in is kept.
using ReadArrayFile = std::function<bool(std::uint64_t offset, std::span<std::byte> out)>;

// Called now and then with how many of the blocks have been gone through; false ends the filling.
using FillProgress = std::function<bool(std::uint64_t blocks, std::uint64_t of_blocks)>;

enum class FillEnd {
  kComplete,  // the array is complete
  kDamaged,   // but for blocks that could not be read all are there
  kStopped,   // progress() said so
  kNoRoom,    // the folder has no room, or the disk
  kFailed,    // the disk failed, or may not be written to
  kDropped,   // KeptArray::is_dropped()
};

// Begins where the array has its first gap: what an earlier run has kept is read once, held against
// its CRC, and not filled anew. Reads by blocks of kKeptBlockNbytes and keeps one batch of them in
// memory. Several may fill one array: they do the same work, and it is right all the same. Throws
// nothing but what `progress` throws.
FillEnd fill_array(KeptArray& array, const ReadArrayFile& read, const FillProgress& progress);

}  // namespace npyfs
