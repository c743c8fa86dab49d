// SPDX-License-Identifier: Apache-2.0

#include "formats/arrays/stored_array.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "formats/arrays/chunked_array.h"
#include "formats/arrays/record_array.h"
#include "formats/arrays/row_column.h"
#include "formats/bytes/transpose.h"
#include "formats/chunk_grid.h"
#include "formats/tables/composed_table.h"

namespace npyfs {

namespace {

// The data of a whole .npy file.
class NpyArray : public Array {
 public:
  explicit NpyArray(StoredNpy npy)
      : Array(npy.header.dtype, npy.header.shape), npy_(std::move(npy)) {}

  bool fortran_order() const override { return npy_.header.fortran_order && shape().size() > 1; }
  std::string storage() const override { return npy_.storage; }
  void plan(ByteRange range, Plan& plan) const override {
    if (range.empty()) {
      return;
    }
    plan.add_extent(*npy_.source, npy_.data_offset() + range.begin, range.nbytes(), npy_.guard());
  }

 private:
  StoredNpy npy_;
};

// A whole .npy file of Fortran order in C order, one tile at a time.
class TransposedNpy : public DecodedGrid {
 public:
  explicit TransposedNpy(const StoredNpy& npy)
      : DecodedGrid({npy.header.dtype, npy.header.shape, tile_of(npy), true}, {},
                    "transposed, " + npy.storage),
        npy_(npy) {}

  void decode(std::uint64_t chunk, std::span<std::byte> out,
              DecodeContext& context) const override {
    context.require_intact(npy_.guard());
    const Shape tile = stored_shape(chunk);
    std::vector<std::byte> stored(out.size());
    read_tile(chunk_begin(chunk), tile, stored);
    transpose(stored, out, tile, dtype().itemsize);
  }

 private:
  static constexpr std::uint64_t kTileNbytes = std::uint64_t{4} << 20;
  // Along axis 0 the elements lie together in the file: each read is of so many bytes, or of all.
  static constexpr std::uint64_t kReadNbytes = 4096;

  // An element at least; numpy has none that is larger than a decoded chunk may be.
  // Whole rows where enough of them fit, so that reads along the array decode each tile once; else
  // the end of the axes first, as the array is read.
  static Shape tile_of(const StoredNpy& npy) {
    const std::uint64_t itemsize = std::max<std::uint64_t>(npy.header.dtype.itemsize, 1);
    const std::uint64_t elements = std::max<std::uint64_t>(kTileNbytes / itemsize, 1);
    const std::uint64_t in_row = std::max<std::uint64_t>(row_elements(npy.header.shape), 1);
    Shape tile(npy.header.shape.size(), 1);
    tile[0] = std::clamp<std::uint64_t>(std::max(elements / in_row, kReadNbytes / itemsize), 1,
                                        std::max<std::uint64_t>(npy.header.shape[0], 1));
    std::uint64_t left = std::max<std::uint64_t>(elements / tile[0], 1);
    for (std::size_t axis = tile.size(); axis-- > 1;) {
      tile[axis] = std::clamp<std::uint64_t>(npy.header.shape[axis], 1, left);
      left /= tile[axis];
    }
    return tile;
  }

  // In Fortran order, too. What lies together in the file is read together.
  void read_tile(const Shape& begin, const Shape& tile, std::span<std::byte> out) const {
    std::size_t inner = 1;  // axes that are one stretch of the file
    std::uint64_t run = tile[0] * dtype().itemsize;
    while (inner < tile.size() && tile[inner - 1] == shape()[inner - 1]) {
      run *= tile[inner++];
    }
    Shape place = begin;
    for (; !out.empty(); out = out.subspan(run)) {
      npy_.source->read_at(npy_.data_offset() + offset_of(place), out.first(run));
      for (std::size_t axis = inner; axis < place.size(); ++axis) {
        if (++place[axis] < begin[axis] + tile[axis]) {
          break;
        }
        place[axis] = begin[axis];
      }
    }
  }

  std::uint64_t offset_of(const Shape& place) const {
    std::uint64_t elements = 0;
    for (std::size_t axis = place.size(); axis-- > 0;) {
      elements = elements * shape()[axis] + place[axis];
    }
    return elements * dtype().itemsize;
  }

  StoredNpy npy_;
};

ArrayPtr make_part(const ArrayPart& part, bool in_c_order) {
  if (const auto* npy = std::get_if<StoredNpy>(&part)) {
    auto array = std::make_shared<NpyArray>(*npy);
    if (in_c_order && array->fortran_order()) {
      return make_chunked_array(std::make_shared<TransposedNpy>(*npy));
    }
    return array;
  }
  return make_chunked_array(std::get<std::shared_ptr<const ChunkGrid>>(part));
}

const std::string& source_name(const StoredArray& stored, std::size_t part) {
  const auto* npy = std::get_if<StoredNpy>(&stored.parts[part]);
  return npy != nullptr ? npy->source->name()
                        : stored.sources[std::min(part, stored.sources.size() - 1)]->name();
}

}  // namespace

ArrayPtr make_stored_array(const StoredArray& stored, const std::string& name, bool in_c_order) {
  if (stored.parts.size() == 1) {
    return make_part(stored.parts.front(), in_c_order);
  }
  std::vector<std::shared_ptr<const Column>> parts;
  std::string first_shape;
  ItemsOf rows;
  for (std::size_t i = 0; i < stored.parts.size(); ++i) {
    const ArrayPtr part = make_part(stored.parts[i], true);
    const auto refuse = [&](const std::string& what) {
      return file_error(ErrorKind::kUnsupported, source_name(stored, i),
                        fmt::format("{} {}, so it cannot stand behind that of {}", name, what,
                                    printable(source_name(stored, 0))));
    };
    if (part->shape().empty()) {
      throw refuse("has no axis");
    }
    const Shape row(part->shape().begin() + 1, part->shape().end());
    if (i == 0) {
      first_shape = shape_text(part->shape());
      rows.dtype = part->dtype();
      rows.shape = row;
      rows.storage = fmt::format("{} parts, {}", stored.parts.size(), part->storage());
    } else if (!(part->dtype() == rows.dtype)) {
      throw refuse(fmt::format("is {}, expected {}", part->dtype().text(), rows.dtype.text()));
    } else if (row != rows.shape) {
      throw refuse(fmt::format("is {}, expected {} but for the first axis",
                               shape_text(part->shape()), first_shape));
    }
    parts.push_back(make_row_column(part));
  }
  rows.column = concatenate_columns(std::move(parts));
  return make_record_array(stacked(std::make_shared<const Items>(std::move(rows))));
}

std::shared_ptr<const StoredNpy> whole_npy(const StoredArray& stored) {
  const auto* npy = stored.parts.size() == 1 ? std::get_if<StoredNpy>(&stored.parts[0]) : nullptr;
  return npy != nullptr ? std::make_shared<const StoredNpy>(*npy) : nullptr;
}

std::uint64_t row_count(const Array& array) {
  return array.shape().empty() ? 1 : array.shape().front();
}

}  // namespace npyfs
