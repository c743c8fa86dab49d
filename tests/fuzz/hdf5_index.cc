// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as an HDF5 file in which the header of a data set begins at one of a few places: its
// index of chunks ends, or is refused, and does not read the file for ever. Checksums of structures
// are right one time in 2^32: this finds its way into those of old files, and into headers.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "formats/bytes/byte_source.h"
#include "formats/bytes/error.h"
#include "formats/hdf5/chunk_index.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace npyfs;  // NOLINT
  const auto bytes = std::as_bytes(std::span(data, size));
  const MemorySource source("a.h5", {bytes.begin(), bytes.end()});
  for (const std::uint64_t header : {std::uint64_t{0}, std::uint64_t{800}, size / 3 / 8 * 8}) {
    for (const bool filtered : {false, true}) {
      std::uint64_t chunks = 0;
      try {
        read_chunk_index(source, {0, {}, header, {100, 7}, {10, 3}, 120, filtered},
                         [&](std::span<const std::uint64_t> place, const StoredChunk&) {
                           if (place.size() != 2) {
                             std::abort();
                           }
                           ++chunks;
                         });
      } catch (const Error&) {  // what is refused is refused by this alone
      }
      if (chunks > 2 * size + 1) {
        std::abort();
      }
    }
  }
  return 0;
}
