// SPDX-License-Identifier: Apache-2.0

#include "formats/bytes/crc.h"

#include <isa-l/crc.h>

#include <algorithm>
#include <limits>

namespace npyfs {

std::uint32_t crc32(std::span<const std::byte> bytes, std::uint32_t before) {
  return crc32_gzip_refl(before, reinterpret_cast<const unsigned char*>(bytes.data()),
                         bytes.size());
}

std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before) {
  // crc32_iscsi neither inverts its seed nor its result, and counts in int.
  std::uint32_t state = ~before;
  while (!bytes.empty()) {
    const std::size_t step =
        std::min(bytes.size(), static_cast<std::size_t>(std::numeric_limits<int>::max()));
    // The parameter lacks a const; isa-l does not write to it.
    auto* data = const_cast<unsigned char*>(reinterpret_cast<const unsigned char*>(bytes.data()));
    state = crc32_iscsi(data, static_cast<int>(step), state);
    bytes = bytes.subspan(step);
  }
  return ~state;
}

}  // namespace npyfs
