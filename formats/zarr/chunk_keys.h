// SPDX-License-Identifier: Apache-2.0
//
// The names that chunks are stored under.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "formats/bytes/dtype.h"

namespace npyfs {

// How many chunks there are along each axis, of which no chunk's is 0.
Shape grid_shape_of(const Shape& shape, const Shape& chunk_shape);

struct ChunkKeys {
  bool prefixed = false;  // version 3's "c/0/1"; "0.1" without
  char separator = '.';

  // Of the chunk at `place` in the grid.
  std::string key(const Shape& place) const;
  // Of chunk `number` of a grid, counted in C order.
  std::string key(std::uint64_t number, const Shape& grid_shape) const;
  // The other way round; nothing where `key` is not that of a chunk of the grid.
  std::optional<std::uint64_t> number(std::string_view key, const Shape& grid_shape) const;
};

}  // namespace npyfs
