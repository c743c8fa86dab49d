// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as an HDF5 file in which the header of a data set begins at one of a few places, or
// where it says so itself: its index of chunks ends, or is refused, and does not read the file for
// ever. Checksums are not looked at, else no change would find its way into newer indexes.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string_view>
#include <vector>

#include "formats/bytes/byte_source.h"
#include "formats/bytes/error.h"
#include "formats/hdf5/chunk_index.h"

namespace {

using namespace npyfs;  // NOLINT

void read(const ByteSource& source, const ChunkIndexPlace& where) {
  std::uint64_t chunks = 0;
  try {
    const auto row = read_chunk_index(
        source, where, [&](std::span<const std::uint64_t> place, const StoredChunk&) {
          if (place.size() != where.shape.size()) {
            std::abort();
          }
          ++chunks;
        });
    if (row && row->grid_shape.size() != where.shape.size()) {
      std::abort();
    }
  } catch (const Error&) {  // what is refused is refused by this alone
  }
  if (chunks > 2 * source.nbytes() + 1) {
    std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t kMostHeaders = 12;
  const auto bytes = std::as_bytes(std::span(data, size));
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const MemorySource source("a.h5", {bytes.begin(), bytes.end()});
  std::vector<std::uint64_t> headers = {0, 800, size / 3 / 8 * 8};
  // Other ones for inputs of other sizes, since a file may have many.
  for (std::size_t at = text.find("OHDR", size % 4096 * 32); at != text.npos;
       at = text.find("OHDR", at + 4)) {
    headers.push_back(at);
    if (headers.size() == kMostHeaders) {
      break;
    }
  }
  for (const std::uint64_t header : headers) {
    for (const bool filtered : {false, true}) {
      for (const StructureWidths widths : {StructureWidths{}, StructureWidths{4, 2}}) {
        read(source,
             {0, widths, header, {100, 7}, {10, 3}, 120, filtered, StructureChecksums::kIgnored});
        read(source, {0, widths, header, {100}, {10}, 40, filtered, StructureChecksums::kIgnored});
      }
    }
  }
  return 0;
}
