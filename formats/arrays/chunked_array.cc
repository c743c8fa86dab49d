// SPDX-License-Identifier: Apache-2.0

#include "formats/arrays/chunked_array.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace npyfs {

namespace {

// numpy's limit. Dials lie on the stack, as there is a plan for every read.
constexpr std::size_t kMostAxes = 64;

// One axis of an odometer over the array's elements: where in the grid a coordinate is.
struct Dial {
  std::uint64_t at = 0;      // the coordinate
  std::uint64_t chunk = 0;   // of the grid, along this axis
  std::uint64_t within = 0;  // its chunk
};

class ChunkedArray : public Array {
 public:
  explicit ChunkedArray(std::shared_ptr<const ChunkGrid> grid)
      : Array(grid->dtype(), grid->shape()), grid_(std::move(grid)) {
    const Shape& chunk_shape = grid_->chunk_shape();
    const bool clipped = grid_->layout().clipped;
    const auto spanned = [&](std::size_t axis) {
      return chunk_shape[axis] == shape()[axis] || (clipped && chunk_shape[axis] > shape()[axis]);
    };
    axes_ = shape().size();
    if (axes_ > kMostAxes) {
      throw Error(ErrorKind::kTooLarge,
                  fmt::format("an array has {} dimensions, expected at most {}", axes_, kMostAxes));
    }
    while (axes_ > 0 && spanned(axes_ - 1)) {
      unit_nbytes_ *= shape()[--axes_];
    }
    unit_nbytes_ *= dtype().itemsize;
    strides_.assign(axes_, 1);
    for (std::size_t axis = axes_; axis-- > 1;) {
      strides_[axis - 1] = strides_[axis] * grid_->grid_shape()[axis];
    }
  }

  std::string storage() const override { return grid_->storage(); }
  std::uint64_t shard_run(std::uint64_t row) const override {
    const std::uint64_t chunk_rows = grid_->chunk_shape()[0];
    return std::min(shape()[0] - row, chunk_rows - row % chunk_rows);
  }

  void plan(ByteRange range, Plan& plan) const override {
    if (range.empty()) {
      return;
    }
    if (axes_ == 0) {
      add(0, range.begin, range.nbytes(), range.begin, plan);
      return;
    }
    Walk walk = start(range.begin);
    std::uint64_t at = range.begin;
    while (at < range.end && !plan.full()) {
      const Dial& last = walk.dials[axes_ - 1];
      const std::uint64_t rows =
          std::min(grid_->chunk_shape()[axes_ - 1] - last.within, shape()[axes_ - 1] - last.at);
      const std::uint64_t nbytes = std::min(rows * unit_nbytes_ - walk.into_unit, range.end - at);
      add(walk.chunk, offset_in_chunk(walk), nbytes, at, plan);
      at += nbytes;
      advance(walk, rows);
    }
  }

 private:
  // A place in the array: the dials, what they say of the chunk, and bytes into the unit there.
  struct Walk {
    std::array<Dial, kMostAxes> dials;  // `axes_` of them
    std::uint64_t chunk = 0;
    std::uint64_t into_unit = 0;
  };

  Walk start(std::uint64_t at) const {
    Walk walk;
    walk.into_unit = at % unit_nbytes_;
    std::uint64_t unit = at / unit_nbytes_;
    for (std::size_t axis = axes_; axis-- > 0;) {
      Dial& dial = walk.dials[axis];
      dial.at = unit % shape()[axis];
      dial.chunk = dial.at / grid_->chunk_shape()[axis];
      dial.within = dial.at % grid_->chunk_shape()[axis];
      walk.chunk += dial.chunk * strides_[axis];
      unit /= shape()[axis];
    }
    return walk;
  }

  // Moves on by `rows` of the last axis, which end at a chunk's edge or at the end of the axis.
  void advance(Walk& walk, std::uint64_t rows) const {
    walk.into_unit = 0;
    for (std::size_t axis = axes_; axis-- > 0; rows = 1) {
      Dial& dial = walk.dials[axis];
      dial.at += rows;
      dial.within += rows;
      if (dial.at == shape()[axis]) {
        walk.chunk -= dial.chunk * strides_[axis];
        dial = {};
        continue;
      }
      if (dial.within == grid_->chunk_shape()[axis]) {
        dial.within = 0;
        ++dial.chunk;
        walk.chunk += strides_[axis];
      }
      return;
    }
  }

  std::uint64_t offset_in_chunk(const Walk& walk) const {
    const Shape& chunk_shape = grid_->chunk_shape();
    const bool clipped = grid_->layout().clipped;
    std::uint64_t unit = 0;
    for (std::size_t axis = 0; axis < axes_; ++axis) {
      const Dial& dial = walk.dials[axis];
      const std::uint64_t left = shape()[axis] - dial.chunk * chunk_shape[axis];
      unit = unit * (clipped ? std::min(chunk_shape[axis], left) : chunk_shape[axis]) + dial.within;
    }
    return unit * unit_nbytes_ + walk.into_unit;
  }

  // `at` is where these bytes are in the array: a fill continues in the phase of its elements.
  void add(std::uint64_t chunk, std::uint64_t offset, std::uint64_t nbytes, std::uint64_t at,
           Plan& plan) const {
    const ChunkPlace place = grid_->locate(chunk);
    switch (place.kind) {
      case ChunkPlace::Kind::kAbsent:
        plan.add_fill(grid_->fill_value(), at, nbytes);
        break;
      case ChunkPlace::Kind::kMapped:
        plan.add_extent(*place.extent.source, place.extent.offset + offset, nbytes, place.guard);
        break;
      case ChunkPlace::Kind::kDecoded:
        plan.add_chunk(*grid_, chunk, offset, nbytes);
        break;
      case ChunkPlace::Kind::kDamaged:
        plan.add_damaged(place.damage->error, nbytes);
        break;
    }
  }

  std::shared_ptr<const ChunkGrid> grid_;
  // The number of axes up to the last one that chunks cut. The axes behind it are laid out in a
  // chunk as in the array: they are one unit.
  std::size_t axes_ = 0;
  std::uint64_t unit_nbytes_ = 1;
  Shape strides_;  // of chunk numbers along those axes
};

}  // namespace

ArrayPtr make_chunked_array(std::shared_ptr<const ChunkGrid> grid) {
  return std::make_shared<ChunkedArray>(std::move(grid));
}

}  // namespace npyfs
