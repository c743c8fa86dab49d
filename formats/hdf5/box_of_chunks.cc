// SPDX-License-Identifier: Apache-2.0

#include "formats/hdf5/box_of_chunks.h"

#include <algorithm>
#include <vector>

#include "formats/bytes/box.h"
#include "formats/bytes/error.h"
#include "formats/hdf5/decode_time.h"

namespace npyfs {

namespace {

class BoxReader {
 public:
  BoxReader(const ChunkGrid& grid, ChunkCache& cache) : grid_(grid), cache_(cache) {}

  // Fills `out`, dense in C order.
  void read(const Shape& start, const Shape& count, std::span<std::byte> out) const {
    const std::uint64_t itemsize = grid_.dtype().itemsize;
    const Shape out_strides = strides_of(count, itemsize);
    const std::size_t rank = start.size();
    Shape first(rank);
    for (std::size_t axis = 0; axis < rank; ++axis) {
      first[axis] = start[axis] / grid_.chunk_shape()[axis];
    }
    Shape at = first;
    do {
      std::uint64_t chunk = 0;
      for (std::size_t axis = 0; axis < rank; ++axis) {
        chunk = chunk * grid_.grid_shape()[axis] + at[axis];
      }
      copy_chunk(chunk, start, count, out, out_strides);
    } while (advance(at, first, start, count));
  }

 private:
  // To the next chunk that the box touches.
  bool advance(Shape& at, const Shape& first, const Shape& start, const Shape& count) const {
    for (std::size_t axis = at.size(); axis-- > 0;) {
      if ((++at[axis]) * grid_.chunk_shape()[axis] < start[axis] + count[axis]) {
        return true;
      }
      at[axis] = first[axis];
    }
    return false;
  }

  void copy_chunk(std::uint64_t chunk, const Shape& start, const Shape& count,
                  std::span<std::byte> out, const Shape& out_strides) const {
    const std::uint64_t itemsize = grid_.dtype().itemsize;
    const Shape begin = grid_.chunk_begin(chunk);
    const Shape stored = grid_.stored_shape(chunk);
    const Shape strides = strides_of(stored, itemsize);
    Shape common(start.size());
    std::byte* to = out.data();
    std::uint64_t from = 0;
    for (std::size_t axis = 0; axis < start.size(); ++axis) {
      const std::uint64_t low = std::max(start[axis], begin[axis]);
      const std::uint64_t high = std::min(start[axis] + count[axis], begin[axis] + stored[axis]);
      common[axis] = high - low;
      to += (low - start[axis]) * out_strides[axis];
      from += (low - begin[axis]) * strides[axis];
    }
    const ChunkPlace place = grid_.locate(chunk);
    switch (place.kind) {
      case ChunkPlace::Kind::kAbsent:
        fill_strided({to, out_strides}, common, grid_.fill_value());
        break;
      case ChunkPlace::Kind::kMapped:
        read_mapped({*place.extent.source, strides, out_strides, common, itemsize},
                    place.extent.offset + from, to, 0);
        break;
      case ChunkPlace::Kind::kDecoded: {
        DecodeTime::require_left();
        const auto block = cache_.get(grid_, chunk);
        block->require_good({from, from + span_nbytes(common, strides, itemsize, 0)});
        copy_strided({block->bytes.data() + from, strides}, {to, out_strides}, common, itemsize);
        break;
      }
      case ChunkPlace::Kind::kDamaged:
        throw Error(place.damage->error);
    }
  }

  // From the first byte of a box to its last, along `axis` and those behind it.
  static std::uint64_t span_nbytes(const Shape& count, const Shape& strides, std::uint64_t itemsize,
                                   std::size_t axis) {
    std::uint64_t span = itemsize;
    for (; axis < count.size(); ++axis) {
      span += (count[axis] - 1) * strides[axis];
    }
    return span;
  }

  struct MappedBox {
    const ByteSource& source;
    const Shape& strides;
    const Shape& out_strides;
    const Shape& count;
    std::uint64_t itemsize;
  };

  // Rows that lie close together are read in one go.
  static void read_mapped(const MappedBox& box, std::uint64_t offset, std::byte* to,
                          std::size_t axis) {
    const std::size_t rank = box.count.size();
    if (axis + 1 >= rank) {
      box.source.read_at(offset, {to, (rank == 0 ? 1 : box.count.back()) * box.itemsize});
      return;
    }
    std::uint64_t rows = 1;
    for (std::size_t at = axis; at + 1 < rank; ++at) {
      rows *= box.count[at];
    }
    const std::uint64_t span = span_nbytes(box.count, box.strides, box.itemsize, axis);
    if (span <= kMostBoxNbytes && span <= rows * (kFarNbytes + box.count.back() * box.itemsize)) {
      std::vector<std::byte> bytes(span);
      box.source.read_at(offset, bytes);
      Shape count = box.count;
      std::fill_n(count.begin(), axis, 1);
      copy_strided({bytes.data(), box.strides}, {to, box.out_strides}, count, box.itemsize);
      return;
    }
    for (std::uint64_t i = 0; i < box.count[axis]; ++i) {
      read_mapped(box, offset + i * box.strides[axis], to + i * box.out_strides[axis], axis + 1);
    }
  }

  const ChunkGrid& grid_;
  ChunkCache& cache_;
};

}  // namespace

void read_box(const ChunkGrid& grid, ChunkCache& cache, const Shape& start, const Shape& count,
              std::span<std::byte> out) {
  BoxReader(grid, cache).read(start, count, out);
}

}  // namespace npyfs
