// SPDX-License-Identifier: Apache-2.0
//
// HDF5 File Format Specification 3.0, IV.A.2.i (data layout, version 4) and VII (indexes of
// chunks): one chunk, implicit; the other kinds are in fixed_array.cc, extensible_array.cc,
// chunk_tree.cc.

#include "formats/hdf5/new_chunk_index.h"

#include <fmt/format.h>

#include <optional>

#include "formats/bytes/byte_range.h"
#include "formats/hdf5/index_entries.h"
#include "formats/hdf5/index_kinds.h"

namespace npyfs {

namespace {

enum class IndexKind : std::uint8_t {
  kSingle = 1,
  kImplicit = 2,
  kFixedArray = 3,
  kExtensibleArray = 4,
  kTree = 5,
};

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

std::optional<ChunkRow> read_implicit(const IndexEntries& entries, std::uint64_t address) {
  if (address == kUndefinedAddress) {
    return std::nullopt;
  }
  if (entries.where().filtered) {
    throw entries.corrupt(address, "filtered chunks have an index that does not tell their sizes");
  }
  ChunkRow row{0, entries.full_nbytes(), {}};
  for (std::size_t axis = 0; axis < entries.most_shape().size(); ++axis) {
    row.grid_shape.push_back(
        divide_up(entries.most_shape()[axis], entries.where().chunk_shape[axis]));
  }
  const auto count = element_count(row.grid_shape);
  const auto nbytes = count ? checked_mul(*count, entries.where().chunk_nbytes) : std::nullopt;
  if (!nbytes || *nbytes > entries.reader().file_nbytes()) {
    throw entries.corrupt(address, "there are more chunks than the file can hold");
  }
  const auto begin = checked_add(address, entries.reader().base());
  if (!begin || !checked_add(*begin, *nbytes)) {
    throw entries.corrupt(address, "the chunks there have no end");
  }
  row.address = *begin;
  return row;
}

std::optional<ChunkRow> read_index(const IndexEntries& entries, StructureParser& layout) {
  constexpr std::uint64_t kSingleIsFiltered = 2;
  const std::uint64_t flags = layout.take(1);
  if (layout.take(1) != entries.where().chunk_shape.size() + 1) {
    throw entries.corrupt(entries.where().header,
                          "the chunks have another rank than the HDF5 library says");
  }
  const std::size_t width = layout.take(1);
  layout.skip(width * (entries.where().chunk_shape.size() + 1));
  const auto kind = static_cast<IndexKind>(layout.take(1));
  switch (kind) {
    case IndexKind::kSingle: {
      StoredChunk chunk{0, entries.full_nbytes(), 0};
      if ((flags & kSingleIsFiltered) != 0) {
        chunk.nbytes = static_cast<std::uint32_t>(layout.take_length());
        chunk.filter_mask = static_cast<std::uint32_t>(layout.take(4));
      }
      entries.hand_over(Shape(entries.where().shape.size(), 0), layout.take_address(), chunk);
      break;
    }
    case IndexKind::kImplicit:
      return read_implicit(entries, layout.take_address());
    case IndexKind::kFixedArray:
      layout.skip(1);
      read_fixed_array(entries, layout.take_address());
      break;
    case IndexKind::kExtensibleArray:
      layout.skip(5);
      read_extensible_array(entries, layout.take_address());
      break;
    case IndexKind::kTree:
      layout.skip(4 + 1 + 1);
      read_chunk_tree(entries, layout.take_address());
      break;
    default:
      throw entries.reader().unsupported(
          fmt::format("its chunks have an index of kind {}", static_cast<unsigned>(kind)));
  }
  return std::nullopt;
}

}  // namespace

std::optional<ChunkRow> read_new_chunk_index(StructureReader& reader, const ChunkIndexPlace& where,
                                             std::span<const std::byte> dataspace,
                                             StructureParser& layout, const TakeChunk& take) {
  const Shape most = take_most_shape(dataspace, reader, where.header, where.shape);
  return read_index(IndexEntries(reader, where, most, take), layout);
}

}  // namespace npyfs
