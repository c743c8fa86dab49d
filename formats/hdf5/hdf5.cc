// SPDX-License-Identifier: Apache-2.0

#include "formats/hdf5/hdf5.h"

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <string_view>

#include "formats/bytes/error.h"
#include "formats/hdf5/linked_files.h"
#include "formats/hdf5/superblock.h"
#include "formats/store.h"

namespace npyfs {

namespace {

// An archive whose first member is an HDF5 file has its signature where a user block would end.
bool is_tar(const ByteSource& source) {
  constexpr std::uint64_t kMagicOffset = 257;
  constexpr std::string_view kMagic = "ustar";
  std::array<std::byte, kMagic.size()> found{};
  if (source.nbytes() < kMagicOffset + found.size()) {
    return false;
  }
  source.read_at(kMagicOffset, found);
  return std::memcmp(found.data(), kMagic.data(), found.size()) == 0;
}

bool recognises(const Location& location) {
  if (location.is_directory) {
    return false;
  }
  const auto signature = find_signature(*location.source);
  return signature && (*signature == 0 || !is_tar(*location.source));
}

StorePtr open_store(const Location& location, OpenContext& context) {
  const ByteSource& source = *location.source;
  if (!find_signature(source)) {
    throw corrupt_at(source.name(), 0,
                     source.nbytes() == 0
                         ? "the file is empty, expected the signature of HDF5"
                         : "the signature of HDF5 is neither there nor at byte 512, 1024 and so "
                           "on; the file is no HDF5 file or has lost its beginning");
  }
  return open_hdf5(location.source, location.path, context);
}

}  // namespace

const Format kHdf5 = {.name = "hdf5",
                      .extensions = {"h5", "hdf5", "he5", "h5ad"},
                      .recognises = recognises,
                      .open_store = open_store};

}  // namespace npyfs
