// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <algorithm>

#include "formats/store.h"

namespace npyfs {

StoredNpy read_stored_npy(SourcePtr source, std::uint64_t offset, std::uint64_t nbytes) {
  // Nearly every preamble is this long.
  constexpr std::uint64_t kUsualNbytes = 128;
  StoredNpy npy;
  npy.source = std::move(source);
  npy.offset = offset;
  std::vector<std::byte> preamble;
  const auto read_preamble = [&](std::uint64_t wanted) {
    preamble.resize(std::min(wanted, nbytes));
    npy.source->read_at(offset, preamble);
    return std::span<const std::byte>(preamble);
  };
  const std::string& name = npy.source->name();
  const auto wanted = npy_header_nbytes(read_preamble(kUsualNbytes));
  if (!wanted) {
    throw corrupt_at(name, offset, "the first bytes are not those of a .npy file");
  }
  npy.header = parse_npy_header(read_preamble(*wanted), name, offset);
  const std::uint64_t there = nbytes - npy.header.nbytes;
  if (npy.data_nbytes() > there) {
    throw corrupt_at(name, offset + nbytes,
                     fmt::format("the data ends after {} bytes, expected {} for {} {}; the file is "
                                 "cut",
                                 there, npy.data_nbytes(), npy.header.dtype.text(),
                                 shape_text(npy.header.shape)));
  }
  return npy;
}

}  // namespace npyfs
