// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace npyfs {

// Bob Jenkins' lookup3 (hashlittle), the checksum of HDF5's metadata.
// https://www.burtleburtle.net/bob/c/lookup3.c
std::uint32_t lookup3(std::span<const std::byte> bytes, std::uint32_t initial);

}  // namespace npyfs
