// SPDX-License-Identifier: Apache-2.0

#include "formats/hdf5/description.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "formats/bytes/byte_range.h"
#include "formats/bytes/npy_header.h"

namespace npyfs {

namespace {

// A type as numpy spells it. The child's spelling is not to be trusted: it becomes part of a .npy
// preamble.
DType take_dtype(WireFrameReader& fields, const std::string& name) {
  DType dtype;
  dtype.descr = fields.take_text();
  dtype.itemsize = fields.take_u32();
  const std::string preamble = print_npy_header(dtype, {}, false);
  const NpyHeader header = parse_npy_header(std::as_bytes(std::span(preamble)), name, 0);
  if (header.dtype.itemsize != dtype.itemsize || !header.shape.empty()) {
    throw fields.wrong("has a type of contradicting size");
  }
  return header.dtype;
}

void require_chunk_shape(const WireFrameReader& fields, const Shape& chunk_shape,
                         const Shape& shape) {
  if (chunk_shape.size() != shape.size() ||
      std::find(chunk_shape.begin(), chunk_shape.end(), 0U) != chunk_shape.end()) {
    throw fields.wrong(
        fmt::format("has chunks of {} in {}", shape_text(chunk_shape), shape_text(shape)));
  }
}

ChunkedStorage take_chunked(WireFrameReader& fields, const Shape& shape) {
  ChunkedStorage chunked;
  chunked.chunk_shape = fields.take_shape();
  require_chunk_shape(fields, chunked.chunk_shape, shape);
  chunked.extra_axes = fields.take_u8();
  if (chunked.extra_axes >= shape.size()) {
    throw fields.wrong("has chunks without an axis");
  }
  chunked.edges_unfiltered = fields.take_u8() != 0;
  chunked.base = fields.take_u64();
  chunked.header = fields.take_u64();
  for (std::uint32_t left = fields.take_count(12); left > 0; --left) {
    FilterDescription filter;
    filter.id = fields.take_u32();
    filter.name = fields.take_text();
    for (std::uint32_t more = fields.take_count(4); more > 0; --more) {
      filter.parameters.push_back(fields.take_u32());
    }
    chunked.filters.push_back(std::move(filter));
  }
  // A mask of a chunk has a bit for each.
  if (chunked.filters.size() > 32) {
    throw fields.wrong(fmt::format("has {} filters", chunked.filters.size()));
  }
  return chunked;
}

ReadStorage take_read(WireFrameReader& fields, const ArrayDescription& array) {
  ReadStorage read;
  read.form = static_cast<ReadForm>(fields.take_u8());
  read.characters = fields.take_u32();
  read.block_shape = fields.take_shape();
  require_chunk_shape(fields, read.block_shape, array.shape);
  switch (read.form) {
    case ReadForm::kPlain:
      break;
    case ReadForm::kText:
      if (array.dtype.kind != 'U' || array.dtype.itemsize != std::uint64_t{4} * read.characters) {
        throw fields.wrong("has text of contradicting size");
      }
      break;
    case ReadForm::kConcat: {
      for (std::uint32_t left = fields.take_count(8); left > 0; --left) {
        read.row_ends.push_back(fields.take_u64());
      }
      const std::uint64_t sum = read.row_ends.empty() ? 0 : read.row_ends.back();
      if (!std::is_sorted(read.row_ends.begin(), read.row_ends.end()) || array.shape.size() != 1 ||
          array.shape[0] != sum) {
        throw fields.wrong("has sequences of contradicting lengths");
      }
      break;
    }
    default:
      throw fields.wrong("has an array to be read in no known way");
  }
  return read;
}

ExternalStorage take_external(WireFrameReader& fields) {
  ExternalStorage external;
  for (std::uint32_t left = fields.take_count(20); left > 0; --left) {
    ExternalStorage::Piece piece;
    piece.file = fields.take_text();
    piece.offset = fields.take_u64();
    piece.nbytes = fields.take_u64();
    external.pieces.push_back(std::move(piece));
  }
  return external;
}

// Steps that overflow would end somewhere else than they say.
std::optional<VirtualStorage::Selection> take_selection(WireFrameReader& fields) {
  VirtualStorage::Selection selection;
  const std::uint8_t rank = fields.take_u8();
  if (rank == kWholeSelection) {
    return std::nullopt;
  }
  for (std::uint8_t axis = 0; axis < rank; ++axis) {
    VirtualStorage::Steps steps;
    steps.start = fields.take_u64();
    steps.stride = fields.take_u64();
    steps.count = fields.take_u64();
    steps.block = fields.take_u64();
    if (steps.count == 1) {
      steps.stride = steps.block;  // there is nothing to step to
    }
    const auto length = checked_mul(steps.count, steps.stride);
    const auto end = length ? checked_add(*length, steps.block) : std::nullopt;
    const auto last = end ? checked_add(steps.start, *end) : std::nullopt;
    if (!last || *last > INT64_MAX || !checked_mul(steps.count, steps.block) ||
        steps.block > steps.stride || steps.stride == 0) {
      throw fields.wrong("has a selection that overflows");
    }
    selection.push_back(steps);
  }
  return selection;
}

VirtualStorage take_virtual(WireFrameReader& fields, const Shape& shape) {
  VirtualStorage storage;
  for (std::uint32_t left = fields.take_count(10); left > 0; --left) {
    VirtualStorage::Mapping mapping;
    mapping.file = fields.take_text();
    mapping.path = fields.take_text();
    mapping.here = take_selection(fields).value_or(VirtualStorage::whole(shape));
    mapping.there = take_selection(fields);
    if (mapping.here.size() != shape.size()) {
      throw fields.wrong("has a virtual array of contradicting rank");
    }
    storage.mappings.push_back(std::move(mapping));
  }
  return storage;
}

}  // namespace

bool DescriptionReader::add(const WireFrame& frame) {
  const bool counts = frame.kind == FrameKind::kGroupBegin || frame.kind == FrameKind::kArray ||
                      frame.kind == FrameKind::kExternalLink || frame.kind == FrameKind::kWarning ||
                      frame.kind == FrameKind::kProgress;
  charge(counts ? 1 : 0, frame.bytes.size());
  WireFrameReader fields(frame.bytes, name_);
  const bool is_end = take(frame, fields);
  charge(0, fields.values_taken() * sizeof(Value));
  return is_end;
}

void DescriptionReader::charge(std::size_t objects, std::uint64_t nbytes) {
  budget_.objects += objects;
  budget_.nbytes += nbytes;
  if (budget_.objects > DescriptionBudget::kMostObjects) {
    throw file_error(ErrorKind::kTooLarge, name_,
                     fmt::format("it holds, or leads to, more than {} objects, expected fewer; "
                                 "its links may multiply them",
                                 DescriptionBudget::kMostObjects));
  }
  if (budget_.nbytes > DescriptionBudget::kMostNbytes) {
    throw file_error(ErrorKind::kTooLarge, name_,
                     fmt::format("attributes and names of all that it holds, or leads to, take "
                                 "more than {} bytes, expected less",
                                 DescriptionBudget::kMostNbytes));
  }
}

bool DescriptionReader::take(const WireFrame& frame, WireFrameReader& fields) {
  switch (frame.kind) {
    case FrameKind::kGroupBegin: {
      if (open_.size() > kMostGroupDepth) {
        throw fields.wrong(fmt::format("nests deeper than {}", kMostGroupDepth));
      }
      GroupDescription& group = open_.emplace_back();
      group.name = fields.take_text();
      Value attributes = fields.take_value();
      if (auto* dict = std::get_if<Dict>(&attributes.v)) {
        group.attributes = std::move(*dict);
      }
      break;
    }
    case FrameKind::kGroupEnd: {
      if (open_.size() < 2) {
        throw fields.wrong("ends a group that it has not begun");
      }
      GroupDescription group = std::move(open_.back());
      open_.pop_back();
      open_.back().groups.push_back(std::move(group));
      break;
    }
    case FrameKind::kArray:
      add_array(fields);
      break;
    case FrameKind::kExternalLink: {
      ExternalLinkDescription link;
      link.name = fields.take_text();
      link.file = fields.take_text();
      link.path = fields.take_text();
      open_.back().links.push_back(std::move(link));
      break;
    }
    case FrameKind::kWarning:
      warnings_.push_back(fields.take_text());
      break;
    case FrameKind::kProgress:
      break;
    case FrameKind::kEnd:
      if (open_.size() != 1) {
        throw fields.wrong("ends within a group");
      }
      return true;
    case FrameKind::kFailure:
      throw file_error(ErrorKind::kCorrupt, name_, fields.take_text());
    default:
      throw fields.wrong("has a part of no known kind");
  }
  fields.require_end();
  return false;
}

void DescriptionReader::add_array(WireFrameReader& fields) {
  ArrayDescription array;
  array.name = fields.take_text();
  array.path = fields.take_text();
  const auto tag = static_cast<StorageTag>(fields.take_u8());
  array.dtype = take_dtype(fields, name_);
  array.shape = fields.take_shape();
  const auto elements = element_count(array.shape);
  const auto nbytes = elements ? checked_mul(*elements, array.dtype.itemsize) : std::nullopt;
  if (!nbytes || *nbytes > INT64_MAX) {
    throw fields.wrong(fmt::format("has an array of {}", shape_text(array.shape)));
  }
  const std::string fill = fields.take_text();
  if (!fill.empty() && fill.size() != array.dtype.itemsize) {
    throw fields.wrong("has a fill value of contradicting size");
  }
  const auto fill_bytes = std::as_bytes(std::span(fill));
  array.fill_value.assign(fill_bytes.begin(), fill_bytes.end());
  Value attributes = fields.take_value();
  if (auto* dict = std::get_if<Dict>(&attributes.v)) {
    array.attributes = std::move(*dict);
  }
  switch (tag) {
    case StorageTag::kAbsent:
      array.storage = AbsentStorage{};
      break;
    case StorageTag::kContiguous:
      array.storage = ContiguousStorage{fields.take_u64()};
      break;
    case StorageTag::kCompact: {
      CompactStorage compact{fields.take_text()};
      if (compact.bytes.size() != *nbytes) {
        throw fields.wrong("has a compact array of contradicting size");
      }
      array.storage = std::move(compact);
      break;
    }
    case StorageTag::kChunked:
      array.storage = take_chunked(fields, array.shape);
      break;
    case StorageTag::kRead:
      array.storage = take_read(fields, array);
      break;
    case StorageTag::kExternal:
      array.storage = take_external(fields);
      break;
    case StorageTag::kVirtual:
      array.storage = take_virtual(fields, array.shape);
      break;
    default:
      throw fields.wrong("has an array stored in no known way");
  }
  open_.back().arrays.push_back(std::move(array));
}

std::vector<ChunkEntry> read_chunk_entries(std::span<const std::byte> bytes, std::size_t rank,
                                           const std::string& name) {
  WireFrameReader fields(bytes, name);
  std::vector<ChunkEntry> entries;
  while (fields.left() > 0) {
    ChunkEntry entry;
    for (std::size_t axis = 0; axis < rank; ++axis) {
      entry.offset.push_back(fields.take_u64());
    }
    entry.address = fields.take_u64();
    entry.nbytes = fields.take_u64();
    entry.filter_mask = fields.take_u32();
    entries.push_back(std::move(entry));
  }
  return entries;
}

}  // namespace npyfs
