// SPDX-License-Identifier: Apache-2.0
//
// HDF5 File Format Specification 3.0, III.A.2 (version 2 B-trees), IV.A.2.i (data layout, version
// 4), VII.A to D (indexes of chunks); HDFGroup/hdf5: src/H5EA*.c, src/H5FA*.c and src/H5B2*.c for
// what it leaves open.

#include "formats/hdf5/new_chunk_index.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <optional>
#include <string_view>
#include <utility>

#include "formats/bytes/byte_range.h"

namespace npyfs {

namespace {

constexpr std::uint64_t kUnlimited = ~std::uint64_t{0};
constexpr std::size_t kChecksumNbytes = 4;
// Signature, version, and what it is of.
constexpr std::size_t kPrefixNbytes = 6;

enum class IndexKind : std::uint8_t {
  kSingle = 1,
  kImplicit = 2,
  kFixedArray = 3,
  kExtensibleArray = 4,
  kTree = 5,
};

std::uint64_t divide_up(std::uint64_t a, std::uint64_t b) { return a / b + (a % b != 0 ? 1 : 0); }

// floor(log2(number)), 0 of 0.
unsigned log2_of(std::uint64_t number) {
  return number == 0 ? 0 : static_cast<unsigned>(std::bit_width(number) - 1);
}

// The axes to which a data set may grow; its shape where the message has none.
Shape take_most_shape(std::span<const std::byte> dataspace, const StructureReader& reader,
                      std::uint64_t address, const Shape& shape) {
  constexpr std::uint64_t kHasMost = 1;
  StructureParser fields(dataspace, reader, address);
  const std::uint64_t version = fields.take(1);
  const std::uint64_t rank = fields.take(1);
  const std::uint64_t flags = fields.take(1);
  fields.skip(version == 1 ? 5 : 1);
  if (rank != shape.size() || (version != 1 && version != 2)) {
    throw reader.corrupt(address, "the data set has another rank than the HDF5 library says");
  }
  fields.skip(reader.widths().length * rank);
  if ((flags & kHasMost) == 0) {
    return shape;
  }
  Shape most;
  for (std::uint64_t axis = 0; axis < rank; ++axis) {
    most.push_back(fields.take_length());
    if (most.back() < shape[axis]) {
      throw reader.corrupt(address,
                           fmt::format("axis {} has {} elements, expected at most {}, to which it "
                                       "may grow",
                                       axis, shape[axis], most.back()));
    }
  }
  return most;
}

// Numbers the places of chunks as arrays of chunks do: in C order of the shape that the data set
// may grow to, an unlimited axis first.
class PlaceNumbers {
 public:
  PlaceNumbers(const Shape& most, const Shape& chunk_shape, bool unlimited_first) {
    for (std::size_t axis = 0; axis < most.size(); ++axis) {
      axes_.push_back(axis);
    }
    const auto unlimited = std::find(most.begin(), most.end(), kUnlimited);
    if (unlimited_first && unlimited != most.end()) {
      const auto axis = unlimited - most.begin();
      std::rotate(axes_.begin(), axes_.begin() + axis, axes_.begin() + axis + 1);
    }
    for (const std::size_t axis : axes_) {
      lengths_.push_back(divide_up(most[axis], chunk_shape[axis]));
    }
    place_.resize(axes_.size());
  }

  const Shape& place_of(std::uint64_t number) {
    for (std::size_t i = axes_.size(); i-- > 1;) {
      const std::uint64_t length = std::max<std::uint64_t>(lengths_[i], 1);
      place_[axes_[i]] = number % length;
      number /= length;
    }
    place_[axes_[0]] = number;
    return place_;
  }

 private:
  std::vector<std::size_t> axes_;
  Shape lengths_;  // in chunks, in the order of axes_
  Shape place_;
};

class IndexReader {
 public:
  IndexReader(StructureReader& reader, const ChunkIndexPlace& where, const Shape& most,
              const TakeChunk& take)
      : reader_(reader),
        where_(where),
        most_(most),
        take_(take),
        address_nbytes_(reader.widths().address),
        length_nbytes_(reader.widths().length) {}

  std::optional<ChunkRow> read(StructureParser& layout) {
    constexpr std::uint64_t kSingleIsFiltered = 2;
    const std::uint64_t flags = layout.take(1);
    if (layout.take(1) != where_.chunk_shape.size() + 1) {
      throw corrupt(where_.header, "the chunks have another rank than the HDF5 library says");
    }
    const std::size_t width = layout.take(1);
    layout.skip(width * (where_.chunk_shape.size() + 1));
    const auto kind = static_cast<IndexKind>(layout.take(1));
    switch (kind) {
      case IndexKind::kSingle: {
        StoredChunk chunk{0, full_nbytes(), 0};
        if ((flags & kSingleIsFiltered) != 0) {
          chunk.nbytes = static_cast<std::uint32_t>(layout.take_length());
          chunk.filter_mask = static_cast<std::uint32_t>(layout.take(4));
        }
        hand_over(Shape(where_.shape.size(), 0), layout.take_address(), chunk);
        break;
      }
      case IndexKind::kImplicit:
        return read_implicit(layout.take_address());
      case IndexKind::kFixedArray:
        layout.skip(1);
        read_fixed_array(layout.take_address());
        break;
      case IndexKind::kExtensibleArray:
        layout.skip(5);
        read_extensible_array(layout.take_address());
        break;
      case IndexKind::kTree:
        layout.skip(4 + 1 + 1);
        read_tree(layout.take_address());
        break;
      default:
        throw reader_.unsupported(
            fmt::format("its chunks have an index of kind {}", static_cast<unsigned>(kind)));
    }
    return std::nullopt;
  }

 private:
  Error corrupt(std::uint64_t address, std::string_view text) const {
    return reader_.corrupt(address, text);
  }

  std::uint32_t full_nbytes() const { return static_cast<std::uint32_t>(where_.chunk_nbytes); }

  void hand_over(const Shape& place, std::uint64_t address, StoredChunk chunk) const {
    if (address != kUndefinedAddress) {
      chunk.address = address + reader_.base();
      take_(place, chunk);
    }
  }

  std::optional<ChunkRow> read_implicit(std::uint64_t address) const {
    if (address == kUndefinedAddress) {
      return std::nullopt;
    }
    if (where_.filtered) {
      throw corrupt(address, "filtered chunks have an index that does not tell their sizes");
    }
    ChunkRow row{0, full_nbytes(), {}};
    for (std::size_t axis = 0; axis < most_.size(); ++axis) {
      row.grid_shape.push_back(divide_up(most_[axis], where_.chunk_shape[axis]));
    }
    const auto count = element_count(row.grid_shape);
    const auto nbytes = count ? checked_mul(*count, where_.chunk_nbytes) : std::nullopt;
    if (!nbytes || *nbytes > reader_.file_nbytes()) {
      throw corrupt(address, "there are more chunks than the file can hold");
    }
    const auto begin = checked_add(address, reader_.base());
    if (!begin || !checked_add(*begin, *nbytes)) {
      throw corrupt(address, "the chunks there have no end");
    }
    row.address = *begin;
    return row;
  }

  // An element of an array of chunks: an address, of filtered chunks also a size and a mask.
  void take_element(StructureParser& fields, std::size_t element_nbytes, std::uint64_t number,
                    PlaceNumbers& numbers) const {
    const std::uint64_t address = fields.take_address();
    StoredChunk chunk{0, full_nbytes(), 0};
    if (where_.filtered) {
      chunk.nbytes = take_size(fields, element_nbytes - address_nbytes_ - 4, address);
      chunk.filter_mask = static_cast<std::uint32_t>(fields.take(4));
    }
    hand_over(numbers.place_of(number), address, chunk);
  }

  std::uint32_t take_size(StructureParser& fields, std::size_t width, std::uint64_t address) const {
    const std::uint64_t nbytes = fields.take(width);
    if (nbytes > UINT32_MAX && address != kUndefinedAddress) {
      throw corrupt(address, fmt::format("a chunk has {} bytes, expected less than 2^32", nbytes));
    }
    return static_cast<std::uint32_t>(nbytes);
  }

  void require_element_size(std::uint64_t element_nbytes, std::uint64_t address) const {
    const bool fits = where_.filtered ? element_nbytes > address_nbytes_ + 4 &&
                                            element_nbytes <= address_nbytes_ + 4 + 8
                                      : element_nbytes == address_nbytes_;
    if (!fits) {
      throw corrupt(address, fmt::format("an index has elements of {} bytes", element_nbytes));
    }
  }

  void read_fixed_array(std::uint64_t address) {
    if (address == kUndefinedAddress) {
      return;
    }
    const auto header = reader_.read_checked(
        address, kPrefixNbytes + 2 + length_nbytes_ + address_nbytes_ + kChecksumNbytes, "FAHD");
    StructureParser fields(header, reader_, address);
    fields.skip(kPrefixNbytes);
    const std::uint64_t element_nbytes = fields.take(1);
    const std::uint64_t page_bits = fields.take(1);
    const std::uint64_t count = fields.take_length();
    const std::uint64_t block = fields.take_address();
    require_element_size(element_nbytes, address);
    if (block == kUndefinedAddress) {
      return;
    }
    if (page_bits >= 32 || !checked_mul(count, element_nbytes + 1)) {
      throw corrupt(address, fmt::format("an index has {} elements", count));
    }
    const std::uint64_t page = std::uint64_t{1} << page_bits;
    PlaceNumbers numbers(most_, where_.chunk_shape, false);
    const std::uint64_t head_nbytes = kPrefixNbytes + address_nbytes_;
    if (count <= page) {
      const auto bytes = reader_.read_checked(
          block, head_nbytes + count * element_nbytes + kChecksumNbytes, "FADB");
      StructureParser elements(bytes, reader_, block);
      elements.skip(head_nbytes);
      for (std::uint64_t i = 0; i < count; ++i) {
        take_element(elements, element_nbytes, i, numbers);
      }
      return;
    }
    const std::uint64_t pages = divide_up(count, page);
    const std::uint64_t bitmap_nbytes = divide_up(pages, 8);
    const auto head =
        reader_.read_checked(block, head_nbytes + bitmap_nbytes + kChecksumNbytes, "FADB");
    const auto written = std::span(head).subspan(head_nbytes, bitmap_nbytes);
    for (std::uint64_t i = 0; i < pages; ++i) {
      if (is_set(written, i)) {
        const std::uint64_t at =
            block + head.size() + i * (page * element_nbytes + kChecksumNbytes);
        read_page(at, i * page, std::min(page, count - i * page), element_nbytes, numbers);
      }
    }
  }

  // The first bit of a byte is its highest.
  static bool is_set(std::span<const std::byte> bits, std::uint64_t i) {
    return (std::to_integer<unsigned>(bits[i / 8]) >> (7 - i % 8) & 1) != 0;
  }

  void read_page(std::uint64_t address, std::uint64_t first, std::uint64_t count,
                 std::size_t element_nbytes, PlaceNumbers& numbers) {
    const auto bytes = reader_.read_checked(address, count * element_nbytes + kChecksumNbytes, "");
    StructureParser elements(bytes, reader_, address);
    for (std::uint64_t i = 0; i < count; ++i) {
      take_element(elements, element_nbytes, first + i, numbers);
    }
  }

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

  void read_extensible_array(std::uint64_t address) {
    if (address == kUndefinedAddress) {
      return;
    }
    const auto header = reader_.read_checked(
        address, kPrefixNbytes + 6 + 6 * length_nbytes_ + address_nbytes_ + kChecksumNbytes,
        "EAHD");
    StructureParser fields(header, reader_, address);
    fields.skip(kPrefixNbytes);
    ExtensibleArray array;
    array.element_nbytes = fields.take(1);
    array.number_bits = fields.take(1);
    array.in_index_block = fields.take(1);
    array.least_elements = fields.take(1);
    array.least_blocks = fields.take(1);
    array.page_bits = fields.take(1);
    fields.skip(4 * length_nbytes_);
    array.count = fields.take_length();
    fields.skip(length_nbytes_);
    const std::uint64_t index_block = fields.take_address();
    require_element_size(array.element_nbytes, address);
    if (!std::has_single_bit(array.least_elements) || !std::has_single_bit(array.least_blocks) ||
        array.least_blocks < 2 || array.number_bits > 64 || array.page_bits >= 32 ||
        log2_of(array.least_elements) > array.number_bits) {
      throw corrupt(address, "the index has parameters that make no sense");
    }
    if (index_block != kUndefinedAddress) {
      read_index_block(array, index_block);
    }
  }

  void read_index_block(const ExtensibleArray& array, std::uint64_t address) {
    const std::uint64_t direct_blocks = 2 * (array.least_blocks - 1);
    const std::uint64_t direct_levels = 2 * log2_of(array.least_blocks);
    const std::uint64_t levels = 1 + array.number_bits - log2_of(array.least_elements);
    const std::uint64_t super_blocks = levels > direct_levels ? levels - direct_levels : 0;
    const std::uint64_t head_nbytes = kPrefixNbytes + address_nbytes_;
    const auto bytes =
        reader_.read_checked(address,
                             head_nbytes + array.in_index_block * array.element_nbytes +
                                 (direct_blocks + super_blocks) * address_nbytes_ + kChecksumNbytes,
                             "EAIB");
    StructureParser fields(bytes, reader_, address);
    fields.skip(head_nbytes);
    PlaceNumbers numbers(most_, where_.chunk_shape, true);
    for (std::uint64_t i = 0; i < array.in_index_block; ++i) {
      take_element(fields, array.element_nbytes, i, numbers);
    }
    std::uint64_t first = array.in_index_block;
    for (std::uint64_t level = 0; level < levels; ++level) {
      // The elements of a level: 2^level times the least.
      const std::uint64_t blocks = std::uint64_t{1} << (level / 2);
      const std::uint64_t elements = array.least_elements << ((level + 1) / 2);
      if (level >= direct_levels) {
        const std::uint64_t super_block = fields.take_address();
        if (super_block != kUndefinedAddress) {
          read_super_block(array, super_block, first, blocks, elements, numbers);
        }
      }
      for (std::uint64_t i = 0; level < direct_levels && i < blocks; ++i) {
        const std::uint64_t block = fields.take_address();
        if (block != kUndefinedAddress) {
          read_data_block(array, block, first + i * elements, elements, {}, numbers);
        }
      }
      first += blocks * elements;
      if (first >= array.count) {
        return;
      }
    }
  }

  void read_super_block(const ExtensibleArray& array, std::uint64_t address, std::uint64_t first,
                        std::uint64_t blocks, std::uint64_t elements, PlaceNumbers& numbers) {
    const std::uint64_t page = std::uint64_t{1} << array.page_bits;
    const std::uint64_t pages = elements > page ? elements / page : 0;
    if (blocks > reader_.file_nbytes() || pages > reader_.file_nbytes() / blocks) {
      throw corrupt(address, "the index has more blocks than the file can hold");
    }
    const std::uint64_t bitmap_nbytes = blocks * divide_up(pages, 8);
    const std::uint64_t head_nbytes = kPrefixNbytes + address_nbytes_ + array.offset_nbytes();
    const auto bytes = reader_.read_checked(
        address, head_nbytes + bitmap_nbytes + blocks * address_nbytes_ + kChecksumNbytes, "EASB");
    const auto written = std::span(bytes).subspan(head_nbytes, bitmap_nbytes);
    StructureParser fields(bytes, reader_, address);
    fields.skip(head_nbytes + bitmap_nbytes);
    for (std::uint64_t i = 0; i < blocks; ++i) {
      const std::uint64_t block = fields.take_address();
      if (block != kUndefinedAddress) {
        std::vector<bool> of_block;
        for (std::uint64_t k = 0; k < pages; ++k) {
          of_block.push_back(is_set(written, i * pages + k));
        }
        read_data_block(array, block, first + i * elements, elements, of_block, numbers);
      }
    }
  }

  // `written` says which of its pages are, where it has any.
  void read_data_block(const ExtensibleArray& array, std::uint64_t address, std::uint64_t first,
                       std::uint64_t elements, const std::vector<bool>& written,
                       PlaceNumbers& numbers) {
    const std::uint64_t head_nbytes = kPrefixNbytes + address_nbytes_ + array.offset_nbytes();
    if (!written.empty()) {
      const auto head = reader_.read_checked(address, head_nbytes + kChecksumNbytes, "EADB");
      const std::uint64_t page = std::uint64_t{1} << array.page_bits;
      for (std::size_t i = 0; i < written.size(); ++i) {
        if (written[i]) {
          const std::uint64_t at =
              address + head.size() + i * (page * array.element_nbytes + kChecksumNbytes);
          read_page(at, first + i * page, page, array.element_nbytes, numbers);
        }
      }
      return;
    }
    const auto bytes = reader_.read_checked(
        address, head_nbytes + elements * array.element_nbytes + kChecksumNbytes, "EADB");
    StructureParser fields(bytes, reader_, address);
    fields.skip(head_nbytes);
    for (std::uint64_t i = 0; i < elements; ++i) {
      take_element(fields, array.element_nbytes, first + i, numbers);
    }
  }

  struct Tree {
    std::uint64_t node_nbytes = 0;
    std::uint64_t record_nbytes = 0;
    // By depth above the leaves: how many bytes it takes to count the records of a node, and of all
    // below it.
    std::vector<std::size_t> count_nbytes;
    std::size_t leaf_count_nbytes = 0;
  };

  void read_tree(std::uint64_t address) {
    if (address == kUndefinedAddress) {
      return;
    }
    const auto header = reader_.read_checked(
        address,
        kPrefixNbytes + 4 + 2 + 2 + 2 + address_nbytes_ + 2 + length_nbytes_ + kChecksumNbytes,
        "BTHD");
    StructureParser fields(header, reader_, address);
    fields.skip(kPrefixNbytes);
    Tree tree;
    tree.node_nbytes = fields.take(4);
    tree.record_nbytes = fields.take(2);
    const std::uint64_t depth = fields.take(2);
    fields.skip(2);
    const std::uint64_t root = fields.take_address();
    const std::uint64_t records = fields.take(2);
    const std::size_t rank = where_.chunk_shape.size();
    const std::uint64_t least = address_nbytes_ + 8 * rank + (where_.filtered ? 4 + 1 : 0);
    const std::uint64_t most = least + (where_.filtered ? 7 : 0);
    constexpr std::uint64_t kNodeOverhead = kPrefixNbytes + kChecksumNbytes;
    if (tree.record_nbytes < least || tree.record_nbytes > most || depth > 32 ||
        tree.node_nbytes < kNodeOverhead + tree.record_nbytes) {
      throw corrupt(address, "the index has parameters that make no sense");
    }
    if (root == kUndefinedAddress) {
      return;
    }
    const auto width_of = [](std::uint64_t count) { return log2_of(count) / 8 + 1; };
    std::uint64_t in_node = (tree.node_nbytes - kNodeOverhead) / tree.record_nbytes;
    std::uint64_t below = in_node;
    tree.leaf_count_nbytes = width_of(in_node);
    tree.count_nbytes.push_back(0);  // a leaf's are not counted twice
    for (std::uint64_t level = 1; level <= depth; ++level) {
      const std::uint64_t pointer =
          address_nbytes_ + tree.leaf_count_nbytes + tree.count_nbytes.back();
      if (tree.node_nbytes < kNodeOverhead + pointer + tree.record_nbytes + pointer) {
        throw corrupt(address, "the index has nodes without room");
      }
      in_node = (tree.node_nbytes - kNodeOverhead - pointer) / (tree.record_nbytes + pointer);
      const auto children = checked_mul(in_node + 1, below);
      below =
          (children ? checked_add(*children, in_node) : std::nullopt).value_or(~std::uint64_t{0});
      tree.count_nbytes.push_back(width_of(below));
    }
    read_node(tree, root, records, depth);
  }

  void read_node(const Tree& tree, std::uint64_t address, std::uint64_t records,
                 std::uint64_t depth) {
    const std::uint64_t pointer =
        depth == 0 ? 0 : address_nbytes_ + tree.leaf_count_nbytes + tree.count_nbytes[depth - 1];
    const std::uint64_t used =
        kPrefixNbytes + records * tree.record_nbytes + (depth == 0 ? 0 : (records + 1) * pointer);
    const auto bytes =
        reader_.read_checked(address, used + kChecksumNbytes, depth == 0 ? "BTLF" : "BTIN");
    StructureParser fields(bytes, reader_, address);
    fields.skip(kPrefixNbytes);
    for (std::uint64_t i = 0; i < records; ++i) {
      take_record(fields, tree);
    }
    for (std::uint64_t i = 0; depth > 0 && i <= records; ++i) {
      const std::uint64_t child = fields.take_address();
      const std::uint64_t of_child = fields.take(tree.leaf_count_nbytes);
      fields.skip(tree.count_nbytes[depth - 1]);
      read_node(tree, child, of_child, depth - 1);
    }
  }

  void take_record(StructureParser& fields, const Tree& tree) const {
    const std::size_t rank = where_.chunk_shape.size();
    const std::uint64_t address = fields.take_address();
    StoredChunk chunk{0, full_nbytes(), 0};
    if (where_.filtered) {
      chunk.nbytes =
          take_size(fields, tree.record_nbytes - address_nbytes_ - 4 - 8 * rank, address);
      chunk.filter_mask = static_cast<std::uint32_t>(fields.take(4));
    }
    Shape place;
    for (std::size_t axis = 0; axis < rank; ++axis) {
      place.push_back(fields.take(8));
    }
    hand_over(place, address, chunk);
  }

  StructureReader& reader_;
  const ChunkIndexPlace& where_;
  const Shape& most_;
  const TakeChunk& take_;
  const std::size_t address_nbytes_;
  const std::size_t length_nbytes_;
};

}  // namespace

std::optional<ChunkRow> read_new_chunk_index(StructureReader& reader, const ChunkIndexPlace& where,
                                             std::span<const std::byte> dataspace,
                                             StructureParser& layout, const TakeChunk& take) {
  const Shape most = take_most_shape(dataspace, reader, where.header, where.shape);
  return IndexReader(reader, where, most, take).read(layout);
}

}  // namespace npyfs
