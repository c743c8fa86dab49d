// SPDX-License-Identifier: Apache-2.0
//
// Virtual data sets: HDF5 File Format Specification 3.0, IV.A.2.i (layout class 3).

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "formats/bytes/box.h"
#include "formats/bytes/byte_range.h"
#include "formats/bytes/error.h"
#include "formats/hdf5/read_grids.h"

namespace npyfs {

namespace {

using Steps = VirtualStorage::Steps;

constexpr std::uint64_t kBlockNbytes = std::uint64_t{1} << 20;
// What is read of a source at once, whatever lies between the elements that are wanted.
constexpr std::uint64_t kMostBoxNbytes = std::uint64_t{4} << 20;
// Elements further apart than this are read one by one: a system call costs about as much as
// copying so many bytes.
constexpr std::uint64_t kFarNbytes = 4096;
// The elements along an axis that a selection takes, by their number k in it.
std::uint64_t taken(const Steps& steps) { return steps.count * steps.block; }

std::uint64_t coordinate(const Steps& steps, std::uint64_t k) {
  return steps.start + k / steps.block * steps.stride + k % steps.block;
}

// How many of them lie before `end`.
std::uint64_t taken_before(const Steps& steps, std::uint64_t end) {
  if (end <= steps.start || taken(steps) == 0) {
    return 0;
  }
  const std::uint64_t into = end - steps.start;
  const std::uint64_t whole = into / steps.stride;
  if (whole >= steps.count) {
    return taken(steps);
  }
  return whole * steps.block + std::min(into % steps.stride, steps.block);
}

// Ends what takes too long: of blocks that are decoded within each other the outermost one's time
// counts. They are all decoded by the thread that asks for it.
class DecodeTime {
 public:
  // `patience` outlives it.
  explicit DecodeTime(const Patience& patience)
      : patience_(patience), end_(patience.now() + patience.virtual_block) {
    if (outermost_ == nullptr) {
      outermost_ = this;
    }
  }
  ~DecodeTime() { outermost_ = outermost_ == this ? nullptr : outermost_; }
  DecodeTime(const DecodeTime&) = delete;
  DecodeTime& operator=(const DecodeTime&) = delete;

  static void require_left() {
    if (outermost_ != nullptr && outermost_->patience_.now() > outermost_->end_) {
      // Not for good, as what is damaged: storage may have stalled.
      throw Error(ErrorKind::kIo,
                  fmt::format("a block of a virtual array takes more than {} s to be put together "
                              "out of other chunks; storage is slow, or the file crafted",
                              outermost_->patience_.virtual_block.count()));
    }
  }

 private:
  static thread_local const DecodeTime* outermost_;
  const Patience& patience_;
  Patience::Clock::time_point end_;
};
thread_local const DecodeTime* DecodeTime::outermost_ = nullptr;

// Reads boxes of any grid.
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

class VirtualGrid : public DecodedGrid {
 public:
  VirtualGrid(const ArrayDescription& array, std::vector<VirtualPart> parts, ChunkCache& cache,
              Patience patience)
      : DecodedGrid({array.dtype, array.shape, block_shape(array), true}, array.fill_value,
                    fmt::format("{} boxes of other arrays", parts.size())),
        parts_(std::move(parts)),
        cache_(cache),
        patience_(std::move(patience)) {
    for (const VirtualPart& part : parts_) {
      pairs_.push_back(pair_axes(part, array.path));
    }
  }

  bool was_written(std::uint64_t chunk, DecodeContext& /*context*/) const override {
    const Shape begin = chunk_begin(chunk);
    const Shape stored = stored_shape(chunk);
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      if (overlap_of(parts_[i], pairs_[i], begin, stored)) {
        return true;
      }
    }
    return false;
  }

  void decode(std::uint64_t chunk, std::span<std::byte> out,
              DecodeContext& /*context*/) const override {
    const DecodeTime time(patience_);
    fill_elements(out, fill_value());
    const Shape begin = chunk_begin(chunk);
    const Shape stored = stored_shape(chunk);
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      copy_part(parts_[i], pairs_[i], begin, stored, out);
    }
  }

 private:
  // Of an axis here: the axis there that it runs along with, if it has more than one element.
  using Pairs = std::vector<std::optional<std::size_t>>;

  // Whole along the last axes, about 1 MiB.
  static Shape block_shape(const ArrayDescription& array) {
    Shape blocks(array.shape.size(), 1);
    std::uint64_t nbytes = std::max<std::uint64_t>(array.dtype.itemsize, 1);
    for (std::size_t axis = blocks.size(); axis-- > 0 && nbytes < kBlockNbytes;) {
      const std::uint64_t length = std::max<std::uint64_t>(array.shape[axis], 1);
      blocks[axis] = std::min(length, std::max<std::uint64_t>(1, kBlockNbytes / nbytes));
      nbytes *= blocks[axis];
      if (blocks[axis] < length) {
        break;
      }
    }
    return blocks;
  }

  Pairs pair_axes(const VirtualPart& part, const std::string& path) const {
    const auto refuse = [&](const std::string& what) {
      return Error(ErrorKind::kUnsupported,
                   fmt::format("{}: a part of it {}", printable(path), what));
    };
    if (!(part.grid->dtype() == dtype())) {
      throw refuse(fmt::format("is {}, expected {}", part.grid->dtype().text(), dtype().text()));
    }
    if (part.there.size() != part.grid->shape().size()) {
      throw refuse("is of an array of another rank");
    }
    Pairs pairs(part.here.size());
    std::size_t there = 0;
    const auto skip_ones = [&] {
      while (there < part.there.size() && taken(part.there[there]) == 1) {
        ++there;
      }
    };
    for (std::size_t axis = 0; axis < part.here.size(); ++axis) {
      if (taken(part.here[axis]) == 1) {
        continue;
      }
      skip_ones();
      if (there == part.there.size() || taken(part.there[there]) != taken(part.here[axis])) {
        throw refuse("has another shape than what it is a box of");
      }
      pairs[axis] = there++;
    }
    skip_ones();
    if (there != part.there.size()) {
      throw refuse("has another shape than what it is a box of");
    }
    return pairs;
  }

  // By the numbers k of elements in the selections: from `first` on, `count` of them.
  struct Overlap {
    Shape first;
    Shape count;
  };

  // Nothing where the part and the block have no element in common that is there.
  static std::optional<Overlap> overlap_of(const VirtualPart& part, const Pairs& pairs,
                                           const Shape& begin, const Shape& stored) {
    Overlap overlap;
    for (std::size_t axis = 0; axis < part.here.size(); ++axis) {
      const Steps& here = part.here[axis];
      const std::uint64_t first = taken_before(here, begin[axis]);
      std::uint64_t end = taken_before(here, begin[axis] + stored[axis]);
      if (const auto there = pairs[axis]) {
        end = std::min(end, taken_before(part.there[*there], part.grid->shape()[*there]));
      }
      if (end <= first) {
        return std::nullopt;
      }
      overlap.first.push_back(first);
      overlap.count.push_back(end - first);
    }
    for (std::size_t axis = 0; axis < part.there.size(); ++axis) {
      if (part.there[axis].start >= part.grid->shape()[axis]) {
        return std::nullopt;
      }
    }
    return overlap;
  }

  void copy_part(const VirtualPart& part, const Pairs& pairs, const Shape& begin,
                 const Shape& stored, std::span<std::byte> out) const {
    const auto overlap = overlap_of(part, pairs, begin, stored);
    if (!overlap) {
      return;
    }
    // The answer is theirs, even where a cache has their chunks.
    for (const SourcePtr& source : part.sources) {
      std::byte first{};
      source->read_at(0, {&first, std::min<std::size_t>(1, source->nbytes())});
    }
    copy_overlap(part, pairs, *overlap, begin, stored, out);
  }

  // The smallest box of the part's array that holds the overlap: its first element, its shape.
  static std::pair<Shape, Shape> box_of(const VirtualPart& part, const Pairs& pairs,
                                        const Overlap& overlap) {
    Shape low(part.there.size());
    Shape box(part.there.size(), 1);
    for (std::size_t axis = 0; axis < low.size(); ++axis) {
      low[axis] = part.there[axis].start;
    }
    for (std::size_t axis = 0; axis < pairs.size(); ++axis) {
      if (const auto there = pairs[axis]) {
        const std::uint64_t first = overlap.first[axis];
        const std::uint64_t last = first + overlap.count[axis] - 1;
        low[*there] = coordinate(part.there[*there], first);
        box[*there] = coordinate(part.there[*there], last) + 1 - low[*there];
      }
    }
    return {low, box};
  }

  // Of elements that lie far from each other in the part's array, half at a time: what is between
  // them is neither read nor given memory.
  void copy_overlap(const VirtualPart& part, const Pairs& pairs, const Overlap& overlap,
                    const Shape& begin, const Shape& stored, std::span<std::byte> out) const {
    const auto [low, box] = box_of(part, pairs, overlap);
    const std::uint64_t wanted = *element_count(overlap.count);
    const auto elements = element_count(box);
    const auto nbytes = elements ? checked_mul(*elements, dtype().itemsize) : std::nullopt;
    const bool is_sparse = !nbytes || *elements > wanted;
    if (is_sparse && (!nbytes || *nbytes > kMostBoxNbytes || *nbytes / kFarNbytes > wanted)) {
      const std::size_t axis = sparsest_axis(pairs, overlap, box);
      Overlap half = overlap;
      half.count[axis] /= 2;
      copy_overlap(part, pairs, half, begin, stored, out);
      half.first[axis] += half.count[axis];
      half.count[axis] = overlap.count[axis] - half.count[axis];
      copy_overlap(part, pairs, half, begin, stored, out);
      return;
    }
    std::vector<std::byte> bytes(*nbytes);
    BoxReader(*part.grid, cache_).read(low, box, bytes);
    const Copy copy{part,
                    pairs,
                    overlap,
                    begin,
                    low,
                    strides_of(stored, dtype().itemsize),
                    strides_of(box, dtype().itemsize),
                    dtype().itemsize};
    copy.run(out.data(), bytes.data(), 0);
  }

  // Of a box that holds more than the overlap there is one along which it does.
  static std::size_t sparsest_axis(const Pairs& pairs, const Overlap& overlap, const Shape& box) {
    std::size_t sparsest = 0;
    std::uint64_t most = 0;
    for (std::size_t axis = 0; axis < pairs.size(); ++axis) {
      const std::uint64_t spread = pairs[axis] ? box[*pairs[axis]] / overlap.count[axis] : 0;
      if (overlap.count[axis] > 1 && spread > most) {
        most = spread;
        sparsest = axis;
      }
    }
    return sparsest;
  }

  // From the box, dense, to the block, dense, element by element of the selections.
  struct Copy {
    const VirtualPart& part;
    const Pairs& pairs;
    const Overlap& overlap;
    const Shape& begin;  // of the block
    const Shape& low;    // of the box
    Shape to_strides;
    Shape from_strides;
    std::uint64_t itemsize;

    void run(std::byte* to, const std::byte* from, std::size_t axis) const {
      if (axis == pairs.size()) {
        std::memcpy(to, from, itemsize);
        return;
      }
      const Steps& here = part.here[axis];
      const auto there = pairs[axis];
      const std::uint64_t first = overlap.first[axis];
      const std::uint64_t count = overlap.count[axis];
      const auto to_at = [&](std::uint64_t k) {
        return to + (coordinate(here, k) - begin[axis]) * to_strides[axis];
      };
      const auto from_at = [&](std::uint64_t k) {
        return there
                   ? from + (coordinate(part.there[*there], k) - low[*there]) * from_strides[*there]
                   : from;
      };
      const bool dense = there && axis + 1 == pairs.size() && from_strides[*there] == itemsize &&
                         is_run(here) && is_run(part.there[*there]);
      if (dense) {
        std::memcpy(to_at(first), from_at(first), count * itemsize);
        return;
      }
      for (std::uint64_t k = first; k < first + count; ++k) {
        run(to_at(k), from_at(k), axis + 1);
      }
    }

    static bool is_run(const Steps& steps) {
      return steps.count == 1 || steps.block == steps.stride;
    }
  };

  std::vector<VirtualPart> parts_;
  std::vector<Pairs> pairs_;
  ChunkCache& cache_;
  Patience patience_;
};

}  // namespace

std::shared_ptr<const ChunkGrid> make_virtual_grid(const ArrayDescription& array,
                                                   std::vector<VirtualPart> parts,
                                                   ChunkCache& cache, Patience patience) {
  return std::make_shared<VirtualGrid>(array, std::move(parts), cache, std::move(patience));
}

}  // namespace npyfs
