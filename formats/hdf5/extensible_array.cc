// SPDX-License-Identifier: Apache-2.0
//
// HDF5 File Format Specification 3.0, VII (indexes of chunks: extensible arrays);
// HDFGroup/hdf5: src/H5EA*.c for what it leaves open.

#include <fmt/format.h>

#include <bit>
#include <span>
#include <vector>

#include "formats/hdf5/chunk_elements.h"
#include "formats/hdf5/index_kinds.h"

namespace npyfs {

namespace {

class ExtensibleArrayReader {
 public:
  explicit ExtensibleArrayReader(const IndexEntries& entries) : entries_(entries) {}

  void read(std::uint64_t address) {
    if (address == kUndefinedAddress) {
      return;
    }
    const auto header =
        entries_.reader().read_checked(address,
                                       kPrefixNbytes + 6 + 6 * entries_.length_nbytes() +
                                           entries_.address_nbytes() + kChecksumNbytes,
                                       "EAHD");
    StructureParser fields(header, entries_.reader(), address);
    fields.skip(kPrefixNbytes);
    ExtensibleArray array;
    array.element_nbytes = fields.take(1);
    array.number_bits = fields.take(1);
    array.in_index_block = fields.take(1);
    array.least_elements = fields.take(1);
    array.least_blocks = fields.take(1);
    array.page_bits = fields.take(1);
    fields.skip(4 * entries_.length_nbytes());
    array.count = fields.take_length();
    fields.skip(entries_.length_nbytes());
    const std::uint64_t index_block = fields.take_address();
    ChunkElements chunks(entries_, array.element_nbytes, true, address);
    if (!std::has_single_bit(array.least_elements) || !std::has_single_bit(array.least_blocks) ||
        array.least_blocks < 2 || array.number_bits > 64 || array.page_bits >= 32 ||
        log2_of(array.least_elements) > array.number_bits) {
      throw entries_.corrupt(address, "the index has parameters that make no sense");
    }
    if (index_block != kUndefinedAddress) {
      read_index_block(array, index_block, chunks);
    }
  }

 private:
  struct ExtensibleArray {
    std::uint64_t element_nbytes = 0;
    std::uint64_t number_bits = 0;     // of the most elements it may have
    std::uint64_t in_index_block = 0;  // elements
    std::uint64_t least_elements = 0;  // of a data block
    std::uint64_t least_blocks = 0;    // pointers in a super block
    std::uint64_t page_bits = 0;
    std::uint64_t count = 0;  // elements that were ever set, and those before them
    std::size_t offset_nbytes() const { return (number_bits + 7) / 8; }
  };

  void read_index_block(const ExtensibleArray& array, std::uint64_t address,
                        ChunkElements& chunks) {
    const std::uint64_t direct_blocks = 2 * (array.least_blocks - 1);
    const std::uint64_t direct_levels = 2 * log2_of(array.least_blocks);
    const std::uint64_t levels = 1 + array.number_bits - log2_of(array.least_elements);
    const std::uint64_t super_blocks = levels > direct_levels ? levels - direct_levels : 0;
    const std::uint64_t head_nbytes = kPrefixNbytes + entries_.address_nbytes();
    const auto bytes = entries_.reader().read_checked(
        address,
        head_nbytes + array.in_index_block * array.element_nbytes +
            (direct_blocks + super_blocks) * entries_.address_nbytes() + kChecksumNbytes,
        "EAIB");
    StructureParser fields(bytes, entries_.reader(), address);
    fields.skip(head_nbytes);
    for (std::uint64_t i = 0; i < array.in_index_block; ++i) {
      chunks.take(fields, i);
    }
    std::uint64_t first = array.in_index_block;
    for (std::uint64_t level = 0; level < levels; ++level) {
      // The elements of a level: 2^level times the least.
      const std::uint64_t blocks = std::uint64_t{1} << (level / 2);
      const std::uint64_t elements = array.least_elements << ((level + 1) / 2);
      if (level >= direct_levels) {
        const std::uint64_t super_block = fields.take_address();
        if (super_block != kUndefinedAddress) {
          read_super_block(array, super_block, first, blocks, elements, chunks);
        }
      }
      for (std::uint64_t i = 0; level < direct_levels && i < blocks; ++i) {
        const std::uint64_t block = fields.take_address();
        if (block != kUndefinedAddress) {
          read_data_block(array, block, first + i * elements, elements, {}, chunks);
        }
      }
      first += blocks * elements;
      if (first >= array.count) {
        return;
      }
    }
  }

  void read_super_block(const ExtensibleArray& array, std::uint64_t address, std::uint64_t first,
                        std::uint64_t blocks, std::uint64_t elements, ChunkElements& chunks) {
    const std::uint64_t page = std::uint64_t{1} << array.page_bits;
    const std::uint64_t pages = elements > page ? elements / page : 0;
    if (blocks > entries_.reader().file_nbytes() ||
        pages > entries_.reader().file_nbytes() / blocks) {
      throw entries_.corrupt(address, "the index has more blocks than the file can hold");
    }
    const std::uint64_t bitmap_nbytes = blocks * divide_up(pages, 8);
    const std::uint64_t head_nbytes =
        kPrefixNbytes + entries_.address_nbytes() + array.offset_nbytes();
    const auto bytes = entries_.reader().read_checked(
        address, head_nbytes + bitmap_nbytes + blocks * entries_.address_nbytes() + kChecksumNbytes,
        "EASB");
    const auto written = std::span(bytes).subspan(head_nbytes, bitmap_nbytes);
    StructureParser fields(bytes, entries_.reader(), address);
    fields.skip(head_nbytes + bitmap_nbytes);
    for (std::uint64_t i = 0; i < blocks; ++i) {
      const std::uint64_t block = fields.take_address();
      if (block != kUndefinedAddress) {
        std::vector<bool> of_block;
        for (std::uint64_t k = 0; k < pages; ++k) {
          of_block.push_back(is_set(written, i * pages + k));
        }
        read_data_block(array, block, first + i * elements, elements, of_block, chunks);
      }
    }
  }

  // `written` says which of its pages are, where it has any.
  void read_data_block(const ExtensibleArray& array, std::uint64_t address, std::uint64_t first,
                       std::uint64_t elements, const std::vector<bool>& written,
                       ChunkElements& chunks) {
    const std::uint64_t head_nbytes =
        kPrefixNbytes + entries_.address_nbytes() + array.offset_nbytes();
    if (!written.empty()) {
      const auto head =
          entries_.reader().read_checked(address, head_nbytes + kChecksumNbytes, "EADB");
      const std::uint64_t page = std::uint64_t{1} << array.page_bits;
      for (std::size_t i = 0; i < written.size(); ++i) {
        if (written[i]) {
          const std::uint64_t at =
              address + head.size() + i * (page * array.element_nbytes + kChecksumNbytes);
          chunks.read_page(at, first + i * page, page);
        }
      }
      return;
    }
    const auto bytes = entries_.reader().read_checked(
        address, head_nbytes + elements * array.element_nbytes + kChecksumNbytes, "EADB");
    StructureParser fields(bytes, entries_.reader(), address);
    fields.skip(head_nbytes);
    for (std::uint64_t i = 0; i < elements; ++i) {
      chunks.take(fields, first + i);
    }
  }

  const IndexEntries& entries_;
};

}  // namespace

void read_extensible_array(const IndexEntries& entries, std::uint64_t address) {
  ExtensibleArrayReader(entries).read(address);
}

}  // namespace npyfs
