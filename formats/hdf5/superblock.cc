// SPDX-License-Identifier: Apache-2.0
//
// HDF5 File Format Specification 3.0, II.A: the superblock.

#include "formats/hdf5/superblock.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>
#include <vector>

namespace npyfs {

namespace {

constexpr std::string_view kSignature = "\x89HDF\r\n\x1a\n";

bool is_width(std::size_t nbytes) { return nbytes == 2 || nbytes == 4 || nbytes == 8; }

}  // namespace

std::optional<std::uint64_t> find_signature(const ByteSource& source) {
  std::array<std::byte, kSignature.size()> found{};
  for (std::uint64_t at = 0; at < source.nbytes() && found.size() <= source.nbytes() - at;
       at = at == 0 ? 512 : at * 2) {
    source.read_at(at, found);
    if (std::string_view(reinterpret_cast<const char*>(found.data()), found.size()) == kSignature) {
      return at;
    }
  }
  return std::nullopt;
}

std::optional<Superblock> read_superblock(const ByteSource& source, std::uint64_t signature) {
  // Of the versions 0 and 1, the longest: 28 bytes, then addresses.
  constexpr std::size_t kMostNbytes = 28 + 4 * 8;
  if (signature > source.nbytes()) {
    return std::nullopt;
  }
  std::vector<std::byte> bytes(std::min<std::uint64_t>(kMostNbytes, source.nbytes() - signature));
  source.read_at(signature, bytes);
  const auto byte_at = [&](std::size_t at) {
    return at < bytes.size() ? std::to_integer<std::size_t>(bytes[at]) : 0;
  };
  const std::size_t version = byte_at(kSignature.size());
  const bool is_old = version < 2;
  Superblock superblock;
  superblock.address_nbytes = byte_at(is_old ? 13 : 9);
  superblock.length_nbytes = byte_at(is_old ? 14 : 10);
  // The base, another address, the end.
  const std::size_t addresses = version == 0 ? 24 : version == 1 ? 28 : 12;
  const std::size_t end = addresses + 2 * superblock.address_nbytes;
  if (version > 3 || !is_width(superblock.address_nbytes) || !is_width(superblock.length_nbytes) ||
      end + superblock.address_nbytes > bytes.size()) {
    return std::nullopt;
  }
  for (std::size_t i = superblock.address_nbytes; i-- > 0;) {
    superblock.end = superblock.end << 8 | byte_at(end + i);
  }
  return superblock;
}

}  // namespace npyfs
