// SPDX-License-Identifier: Apache-2.0
//
// HDF5 File Format Specification 3.0, III.A.1 (version 1 B-trees) and IV.A.2.i (data layout); the
// indexes of newer files are in new_chunk_index.cc.

#include "formats/hdf5/chunk_index.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "formats/bytes/byte_range.h"
#include "formats/hdf5/new_chunk_index.h"
#include "formats/hdf5/object_header.h"

namespace npyfs {

namespace {

constexpr std::uint64_t kChunkTree = 1;

class TreeReader {
 public:
  TreeReader(StructureReader& reader, const Shape& chunk_shape, const TakeChunk& take)
      : reader_(reader), chunk_shape_(chunk_shape), place_(chunk_shape.size()), take_(take) {}

  // `level` is what the parent says of it: a tree that goes round in a circle has none.
  void read(std::uint64_t address, std::optional<std::uint64_t> expected_level) {
    const std::size_t head_nbytes = 8 + 2 * reader_.widths().address;
    const auto head = reader_.read(address, head_nbytes);
    StructureParser fields(head, reader_, address);
    if (fields.take(4) != kSignature || fields.take(1) != kChunkTree) {
      throw reader_.corrupt(address, "no node of a chunk index begins there");
    }
    const std::uint64_t level = fields.take(1);
    if (expected_level && level != *expected_level) {
      throw reader_.corrupt(
          address, fmt::format("the node is of level {}, expected {}", level, *expected_level));
    }
    const std::uint64_t used = fields.take(2);
    const std::size_t key_nbytes = 8 + 8 * (chunk_shape_.size() + 1);
    const auto body =
        reader_.read(address + head_nbytes, used * (key_nbytes + reader_.widths().address));
    StructureParser entries(body, reader_, address);
    for (std::uint64_t i = 0; i < used; ++i) {
      StoredChunk chunk;
      chunk.nbytes = static_cast<std::uint32_t>(entries.take(4));
      chunk.filter_mask = static_cast<std::uint32_t>(entries.take(4));
      take_place(entries, address, level == 0);
      const std::uint64_t child = entries.take_address();
      if (level > 0) {
        read(child, level - 1);
      } else {
        chunk.address = child + reader_.base();
        require_behind(address);
        take_(place_, chunk);
      }
    }
  }

 private:
  static constexpr std::uint64_t kSignature = 0x45455254;  // "TREE"

  // Keys of inner nodes are not all places of chunks.
  void take_place(StructureParser& entries, std::uint64_t address, bool is_chunk) {
    for (std::size_t axis = 0; axis < chunk_shape_.size(); ++axis) {
      const std::uint64_t offset = entries.take(8);
      if (is_chunk && offset % chunk_shape_[axis] != 0) {
        throw reader_.corrupt(address,
                              fmt::format("a chunk begins at element {} of axis {}, expected a "
                                          "multiple of {}",
                                          offset, axis, chunk_shape_[axis]));
      }
      place_[axis] = offset / chunk_shape_[axis];
    }
    entries.skip(8);
  }

  // Chunks stand in the order of their places: a key that a flipped bit has moved elsewhere is
  // seen, where its chunk would be taken for one that was never written.
  void require_behind(std::uint64_t address) {
    if (before_ && *before_ >= place_) {
      throw reader_.corrupt(address,
                            fmt::format("chunk ({}) stands behind chunk ({}), expected the "
                                        "other order",
                                        fmt::join(place_, ", "), fmt::join(*before_, ", ")));
    }
    before_ = place_;
  }

  StructureReader& reader_;
  const Shape& chunk_shape_;
  Shape place_;
  std::optional<Shape> before_;
  const TakeChunk& take_;
};

const HeaderMessage& find_message(const std::vector<HeaderMessage>& messages, std::uint16_t type,
                                  const StructureReader& reader, std::uint64_t address) {
  constexpr std::uint8_t kShared = 0x02;
  const auto found =
      std::find_if(messages.begin(), messages.end(),
                   [&](const HeaderMessage& message) { return message.type == type; });
  if (found == messages.end()) {
    throw reader.corrupt(address, "the object header does not say how its data lies");
  }
  if ((found->flags & kShared) != 0) {
    throw reader.unsupported("a data set shares its header with others");
  }
  return *found;
}

void require_chunked(StructureParser& layout, const StructureReader& reader,
                     std::uint64_t address) {
  constexpr std::uint64_t kChunked = 2;
  if (layout.take(1) != kChunked) {
    throw reader.corrupt(address, "the data set is not chunked, as the HDF5 library says it is");
  }
}

}  // namespace

std::optional<ChunkRow> read_chunk_index(const ByteSource& source, const ChunkIndexPlace& where,
                                         const TakeChunk& take) {
  StructureReader reader(source, where.base, where.widths, where.checksums);
  const std::uint64_t address = where.header;
  const auto messages = read_object_header(reader, address);
  const HeaderMessage& message = find_message(messages, kLayoutMessage, reader, address);
  StructureParser layout(message.body, reader, address);
  const std::uint64_t version = layout.take(1);
  if (version == 3) {
    require_chunked(layout, reader, address);
    if (layout.take(1) != where.chunk_shape.size() + 1) {
      throw reader.corrupt(address, "the chunks have another rank than the HDF5 library says");
    }
    const std::uint64_t root = layout.take_address();
    if (root != kUndefinedAddress) {
      TreeReader(reader, where.chunk_shape, take).read(root, std::nullopt);
    }
    return std::nullopt;
  }
  if (version == 4) {
    require_chunked(layout, reader, address);
    const HeaderMessage& space = find_message(messages, kDataspaceMessage, reader, address);
    return read_new_chunk_index(reader, where, space.body, layout, take);
  }
  throw reader.unsupported(fmt::format("its chunks are laid out by version {}", version));
}

}  // namespace npyfs
