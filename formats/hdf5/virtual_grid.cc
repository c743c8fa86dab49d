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
#include "formats/hdf5/box_of_chunks.h"
#include "formats/hdf5/decode_time.h"
#include "formats/hdf5/read_grids.h"
#include "formats/hdf5/selection_steps.h"

namespace npyfs {

namespace {

constexpr std::uint64_t kBlockNbytes = std::uint64_t{1} << 20;

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
    read_box(*part.grid, cache_, low, box, bytes);
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
