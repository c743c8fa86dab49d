// SPDX-License-Identifier: Apache-2.0
//
// The checksums that formats carry, by isa-l at memory speed.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace npyfs {

// zlib's CRC-32; crc32(b, crc32(a)) is that of a followed by b, and 0 starts.
std::uint32_t crc32(std::span<const std::byte> bytes, std::uint32_t before = 0);

// CRC-32C (Castagnoli), chained in the same way.
std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before = 0);

// TFRecord's rotation of a CRC-32C, so that a CRC of data that holds CRCs stays a good check.
constexpr std::uint32_t mask_crc32c(std::uint32_t crc) {
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8U;
}

}  // namespace npyfs
