// SPDX-License-Identifier: Apache-2.0

#include "formats/hdf5/index_entries.h"

#include <fmt/format.h>

namespace npyfs {

void IndexEntries::hand_over(const Shape& place, std::uint64_t address, StoredChunk chunk) const {
  if (address != kUndefinedAddress) {
    chunk.address = address + reader_.base();
    take_(place, chunk);
  }
}

std::uint32_t IndexEntries::take_size(StructureParser& fields, std::size_t width,
                                      std::uint64_t address) const {
  const std::uint64_t nbytes = fields.take(width);
  if (nbytes > UINT32_MAX && address != kUndefinedAddress) {
    throw corrupt(address, fmt::format("a chunk has {} bytes, expected less than 2^32", nbytes));
  }
  return static_cast<std::uint32_t>(nbytes);
}

}  // namespace npyfs
