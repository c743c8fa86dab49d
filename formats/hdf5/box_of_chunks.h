// SPDX-License-Identifier: Apache-2.0
//
// Boxes of any grid, put together out of its chunks.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "formats/bytes/chunk_source.h"
#include "formats/chunk_grid.h"

namespace npyfs {

// What is read of a source at once, whatever lies between the elements that are wanted.
inline constexpr std::uint64_t kMostBoxNbytes = std::uint64_t{4} << 20;
// Elements further apart than this are read one by one: a system call costs about as much as
// copying so many bytes.
inline constexpr std::uint64_t kFarNbytes = 4096;

// Fills `out` with the box of `grid` from `start` on, of shape `count`, dense in C order; no axis
// of it is 0. Throws what makes a chunk unreadable, and as DecodeTime::require_left.
void read_box(const ChunkGrid& grid, ChunkCache& cache, const Shape& start, const Shape& count,
              std::span<std::byte> out);

}  // namespace npyfs
