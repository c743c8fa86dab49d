// SPDX-License-Identifier: Apache-2.0
//
// What an HDF5 file says of itself at its beginning, as far as it is needed here.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "formats/bytes/byte_source.h"

namespace npyfs {

// Where the signature is: at byte 0, or behind a user block of 512, 1024, 2048 ... bytes.
std::optional<std::uint64_t> find_signature(const ByteSource& source);

struct Superblock {
  // Bytes of an address and of a length everywhere in the file: 2, 4 or 8 (16 is legal, and never
  // seen: no address then fits 64 bits).
  std::size_t address_nbytes = 8;
  std::size_t length_nbytes = 8;
  // Where the file ends, the user block included.
  std::uint64_t end = 0;
};

// Nothing where it is cut, of no known version, or makes no sense. `signature` is its place.
std::optional<Superblock> read_superblock(const ByteSource& source, std::uint64_t signature);

}  // namespace npyfs
