// SPDX-License-Identifier: Apache-2.0
//
// HDF5 File Format Specification 3.0, III.A.2 (version 2 B-trees) and VII (indexes of chunks);
// HDFGroup/hdf5: src/H5B2*.c for what they leave open.

#include <fmt/format.h>

#include <optional>
#include <vector>

#include "formats/bytes/byte_range.h"
#include "formats/hdf5/index_kinds.h"

namespace npyfs {

namespace {

class ChunkTreeReader {
 public:
  explicit ChunkTreeReader(const IndexEntries& entries) : entries_(entries) {}

  void read(std::uint64_t address) {
    if (address == kUndefinedAddress) {
      return;
    }
    const auto header =
        entries_.reader().read_checked(address,
                                       kPrefixNbytes + 4 + 2 + 2 + 2 + entries_.address_nbytes() +
                                           2 + entries_.length_nbytes() + kChecksumNbytes,
                                       "BTHD");
    StructureParser fields(header, entries_.reader(), address);
    fields.skip(kPrefixNbytes);
    Tree tree;
    tree.node_nbytes = fields.take(4);
    tree.record_nbytes = fields.take(2);
    const std::uint64_t depth = fields.take(2);
    fields.skip(2);
    const std::uint64_t root = fields.take_address();
    const std::uint64_t records = fields.take(2);
    const std::size_t rank = entries_.where().chunk_shape.size();
    const std::uint64_t least =
        entries_.address_nbytes() + 8 * rank + (entries_.where().filtered ? 4 + 1 : 0);
    const std::uint64_t most = least + (entries_.where().filtered ? 7 : 0);
    constexpr std::uint64_t kNodeOverhead = kPrefixNbytes + kChecksumNbytes;
    if (tree.record_nbytes < least || tree.record_nbytes > most || depth > 32 ||
        tree.node_nbytes < kNodeOverhead + tree.record_nbytes) {
      throw entries_.corrupt(address, "the index has parameters that make no sense");
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
          entries_.address_nbytes() + tree.leaf_count_nbytes + tree.count_nbytes.back();
      if (tree.node_nbytes < kNodeOverhead + pointer + tree.record_nbytes + pointer) {
        throw entries_.corrupt(address, "the index has nodes without room");
      }
      in_node = (tree.node_nbytes - kNodeOverhead - pointer) / (tree.record_nbytes + pointer);
      const auto children = checked_mul(in_node + 1, below);
      below =
          (children ? checked_add(*children, in_node) : std::nullopt).value_or(~std::uint64_t{0});
      tree.count_nbytes.push_back(width_of(below));
    }
    read_node(tree, root, records, depth);
  }

 private:
  struct Tree {
    std::uint64_t node_nbytes = 0;
    std::uint64_t record_nbytes = 0;
    // By depth above the leaves: how many bytes it takes to count the records of a node, and of all
    // below it.
    std::vector<std::size_t> count_nbytes;
    std::size_t leaf_count_nbytes = 0;
  };

  void read_node(const Tree& tree, std::uint64_t address, std::uint64_t records,
                 std::uint64_t depth) {
    const std::uint64_t pointer = depth == 0 ? 0
                                             : entries_.address_nbytes() + tree.leaf_count_nbytes +
                                                   tree.count_nbytes[depth - 1];
    const std::uint64_t used =
        kPrefixNbytes + records * tree.record_nbytes + (depth == 0 ? 0 : (records + 1) * pointer);
    const auto bytes = entries_.reader().read_checked(address, used + kChecksumNbytes,
                                                      depth == 0 ? "BTLF" : "BTIN");
    StructureParser fields(bytes, entries_.reader(), address);
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
    const std::size_t rank = entries_.where().chunk_shape.size();
    const std::uint64_t address = fields.take_address();
    StoredChunk chunk{0, entries_.full_nbytes(), 0};
    if (entries_.where().filtered) {
      chunk.nbytes = entries_.take_size(
          fields, tree.record_nbytes - entries_.address_nbytes() - 4 - 8 * rank, address);
      chunk.filter_mask = static_cast<std::uint32_t>(fields.take(4));
    }
    Shape place;
    for (std::size_t axis = 0; axis < rank; ++axis) {
      place.push_back(fields.take(8));
    }
    entries_.hand_over(place, address, chunk);
  }

  const IndexEntries& entries_;
};

}  // namespace

void read_chunk_tree(const IndexEntries& entries, std::uint64_t address) {
  ChunkTreeReader(entries).read(address);
}

}  // namespace npyfs
