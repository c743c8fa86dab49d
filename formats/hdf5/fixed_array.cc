// SPDX-License-Identifier: Apache-2.0
//
// HDF5 File Format Specification 3.0, VII (indexes of chunks: fixed arrays); HDFGroup/hdf5:
// src/H5FA*.c for what it leaves open.

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "formats/bytes/byte_range.h"
#include "formats/hdf5/chunk_elements.h"
#include "formats/hdf5/index_kinds.h"

namespace npyfs {

void read_fixed_array(const IndexEntries& entries, std::uint64_t address) {
  if (address == kUndefinedAddress) {
    return;
  }
  const auto header = entries.reader().read_checked(
      address,
      kPrefixNbytes + 2 + entries.length_nbytes() + entries.address_nbytes() + kChecksumNbytes,
      "FAHD");
  StructureParser fields(header, entries.reader(), address);
  fields.skip(kPrefixNbytes);
  const std::uint64_t element_nbytes = fields.take(1);
  const std::uint64_t page_bits = fields.take(1);
  const std::uint64_t count = fields.take_length();
  const std::uint64_t block = fields.take_address();
  ChunkElements chunks(entries, element_nbytes, false, address);
  if (block == kUndefinedAddress) {
    return;
  }
  if (page_bits >= 32 || !checked_mul(count, element_nbytes + 1)) {
    throw entries.corrupt(address, fmt::format("an index has {} elements", count));
  }
  const std::uint64_t page = std::uint64_t{1} << page_bits;
  const std::uint64_t head_nbytes = kPrefixNbytes + entries.address_nbytes();
  if (count <= page) {
    const auto bytes = entries.reader().read_checked(
        block, head_nbytes + count * element_nbytes + kChecksumNbytes, "FADB");
    StructureParser elements(bytes, entries.reader(), block);
    elements.skip(head_nbytes);
    for (std::uint64_t i = 0; i < count; ++i) {
      chunks.take(elements, i);
    }
    return;
  }
  const std::uint64_t pages = divide_up(count, page);
  const std::uint64_t bitmap_nbytes = divide_up(pages, 8);
  const auto head =
      entries.reader().read_checked(block, head_nbytes + bitmap_nbytes + kChecksumNbytes, "FADB");
  const auto written = std::span(head).subspan(head_nbytes, bitmap_nbytes);
  for (std::uint64_t i = 0; i < pages; ++i) {
    if (is_set(written, i)) {
      const std::uint64_t at = block + head.size() + i * (page * element_nbytes + kChecksumNbytes);
      chunks.read_page(at, i * page, std::min(page, count - i * page));
    }
  }
}

}  // namespace npyfs
