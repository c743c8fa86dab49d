// SPDX-License-Identifier: Apache-2.0

#include "formats/chunk_grid.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace npyfs {

namespace {

std::uint64_t checked_nbytes(const Shape& shape, const DType& dtype, const char* what) {
  const auto elements = element_count(shape);
  const auto nbytes = elements ? checked_mul(*elements, dtype.itemsize) : std::nullopt;
  if (!nbytes || *nbytes > INT64_MAX) {
    throw Error(ErrorKind::kTooLarge, fmt::format("{} of {} {} exceeds 2^63 bytes", what,
                                                  dtype.text(), shape_text(shape)));
  }
  return *nbytes;
}

class MappedGrid : public ChunkGrid {
 public:
  MappedGrid(GridLayout layout, SourcePtr source, std::uint64_t offset,
             std::shared_ptr<const Checksums> guarded_by, std::uint64_t record)
      : ChunkGrid(std::move(layout), {}, "mapped"),
        source_(std::move(source)),
        offset_(offset),
        guarded_by_(std::move(guarded_by)),
        record_(record) {}

  ChunkPlace locate(std::uint64_t chunk) const override {
    ChunkPlace place;
    place.kind = ChunkPlace::Kind::kMapped;
    place.extent = {source_.get(), offset_, chunk_nbytes(chunk)};
    if (guarded_by_ != nullptr) {
      place.guard = {guarded_by_.get(), record_, 1};
    }
    return place;
  }

 private:
  SourcePtr source_;
  std::uint64_t offset_;
  std::shared_ptr<const Checksums> guarded_by_;
  std::uint64_t record_;
};

}  // namespace

ChunkGrid::ChunkGrid(GridLayout layout, std::vector<std::byte> fill_value, std::string storage)
    : layout_(std::move(layout)), fill_value_(std::move(fill_value)), storage_(std::move(storage)) {
  const std::size_t rank = shape().size();
  if (chunk_shape().size() != rank ||
      std::find(chunk_shape().begin(), chunk_shape().end(), 0U) != chunk_shape().end()) {
    throw std::logic_error("a chunk has the rank of its array and no empty axis");
  }
  fill_value_.resize(dtype().itemsize);
  checked_nbytes(shape(), dtype(), "an array");
  for (std::size_t axis = 0; axis < rank; ++axis) {
    const std::uint64_t length = chunk_shape()[axis];
    grid_shape_.push_back(shape()[axis] / length + (shape()[axis] % length != 0 ? 1 : 0));
  }
  // Never more than there are elements.
  chunk_count_ = *element_count(grid_shape_);
  if (!layout_.clipped) {
    full_chunk_nbytes_ = checked_nbytes(chunk_shape(), dtype(), "a chunk");
  }
}

Shape ChunkGrid::chunk_begin(std::uint64_t chunk) const {
  Shape begin(shape().size());
  for (std::size_t axis = begin.size(); axis-- > 0;) {
    begin[axis] = chunk % grid_shape_[axis] * chunk_shape()[axis];
    chunk /= grid_shape_[axis];
  }
  return begin;
}

Shape ChunkGrid::stored_shape(std::uint64_t chunk) const {
  Shape stored = chunk_shape();
  if (layout_.clipped) {
    const Shape begin = chunk_begin(chunk);
    for (std::size_t axis = 0; axis < stored.size(); ++axis) {
      stored[axis] = std::min(stored[axis], shape()[axis] - begin[axis]);
    }
  }
  return stored;
}

std::uint64_t ChunkGrid::chunk_nbytes(std::uint64_t chunk) const {
  return layout_.clipped ? *element_count(stored_shape(chunk)) * dtype().itemsize
                         : full_chunk_nbytes_;
}

void ChunkGrid::decode(std::uint64_t /*chunk*/, std::span<std::byte> /*out*/,
                       DecodeContext& /*context*/) const {
  throw std::logic_error("a grid whose chunks are not decoded was asked to decode one");
}

ChunkPlace DecodedGrid::locate(std::uint64_t /*chunk*/) const {
  ChunkPlace place;
  place.kind = ChunkPlace::Kind::kDecoded;
  return place;
}

std::shared_ptr<const ChunkGrid> make_mapped_grid(DType dtype, Shape shape, SourcePtr source,
                                                  std::uint64_t offset,
                                                  std::shared_ptr<const Checksums> guarded_by,
                                                  std::uint64_t record) {
  GridLayout layout{std::move(dtype), shape, std::move(shape), true};
  for (std::uint64_t& length : layout.chunk_shape) {
    length = std::max<std::uint64_t>(length, 1);
  }
  auto grid = std::make_shared<MappedGrid>(std::move(layout), source, offset, std::move(guarded_by),
                                           record);
  source->require_within(offset, grid->chunk_count() == 0 ? 0 : grid->chunk_nbytes(0));
  return grid;
}

}  // namespace npyfs
