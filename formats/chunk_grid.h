// SPDX-License-Identifier: Apache-2.0
//
// An n-dimensional array cut into equal chunks, as zarr and HDF5 store it: what a format says of
// such an array. formats/arrays makes the bytes of a .npy file out of it.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "formats/bytes/chunk_source.h"
#include "formats/bytes/dtype.h"
#include "formats/bytes/plan.h"
#include "formats/column.h"

namespace npyfs {

// How an array is cut. Chunks are numbered in C order of their place in the grid; all have
// `chunk_shape`, which may be larger than `shape` and of which the last along an axis may hang over
// its end.
struct GridLayout {
  DType dtype;
  Shape shape;
  Shape chunk_shape;  // as long as `shape`; no axis is 0
  // Whether what hangs over is not stored: the chunk is smaller then.
  bool clipped = false;
};

// Where the elements of one chunk are: dense, in C order, of chunk_shape (or what is left of it
// where the layout is clipped).
struct ChunkPlace {
  enum class Kind {
    kAbsent,   // nowhere: every element is the fill value
    kMapped,   // they lie in `extent` as they are, chunk_nbytes() long, under `guard`
    kDecoded,  // decode() makes them
    kDamaged,  // they cannot be read, because of `damage`
  };
  Kind kind = Kind::kAbsent;
  Extent extent;
  Guard guard;
  const Damage* damage = nullptr;  // lives as long as the grid
};

// Immutable; any thread. Its ChunkSource::decode is asked for chunks that are kDecoded only.
class ChunkGrid : public ChunkSource {
 public:
  const DType& dtype() const { return layout_.dtype; }
  const Shape& shape() const { return layout_.shape; }
  const Shape& chunk_shape() const { return layout_.chunk_shape; }
  const GridLayout& layout() const { return layout_; }
  // One element.
  std::span<const std::byte> fill_value() const { return fill_value_; }
  // Where chunks lie, and how they are stored: "mapped", "blosc(lz4) chunks of 65536x8". For users.
  const std::string& storage() const { return storage_; }
  // Whether decode() reads what is stored, so that decoding a chunk tells whether it is damaged.
  virtual bool is_stored() const { return true; }

  // The number of chunks along each axis.
  const Shape& grid_shape() const { return grid_shape_; }
  // Their product: the number of chunks.
  std::uint64_t chunk_count() const { return chunk_count_; }
  // Where `chunk` begins in the array: its first element along each axis.
  Shape chunk_begin(std::uint64_t chunk) const;
  // The shape in which `chunk` is stored.
  Shape stored_shape(std::uint64_t chunk) const;
  std::uint64_t chunk_nbytes(std::uint64_t chunk) const override;

  // Asked for every stretch of every read: reads nothing, takes no memory. Where it takes I/O to
  // find out (whether a chunk's file is there, the index of a shard), that belongs into decode(),
  // and the chunk is kDecoded.
  virtual ChunkPlace locate(std::uint64_t chunk) const = 0;
  // Whether anything is stored of `chunk`, which is kDecoded; else it is the fill value. Takes I/O,
  // but not the memory of a chunk; throws as decode() does.
  virtual bool was_written(std::uint64_t /*chunk*/, DecodeContext& /*context*/) const {
    return true;
  }
  // A grid without chunks that are kDecoded leaves it as it is.
  void decode(std::uint64_t chunk, std::span<std::byte> out, DecodeContext& context) const override;

 protected:
  // `fill_value` is one element, or empty for zeroes. Throws kTooLarge where the array, or a whole
  // chunk, exceeds 63 bits. Whether a chunk fits into memory (kMostDecodedNbytes) the format
  // checks.
  ChunkGrid(GridLayout layout, std::vector<std::byte> fill_value, std::string storage);

 private:
  GridLayout layout_;
  std::vector<std::byte> fill_value_;
  std::string storage_;
  Shape grid_shape_;
  std::uint64_t chunk_count_ = 1;
  std::uint64_t full_chunk_nbytes_ = 0;
};

// A grid all of whose chunks are kDecoded.
class DecodedGrid : public ChunkGrid {
 public:
  ChunkPlace locate(std::uint64_t chunk) const override;
  void decode(std::uint64_t chunk, std::span<std::byte> out,
              DecodeContext& context) const override = 0;

 protected:
  using ChunkGrid::ChunkGrid;
};

// One chunk that lies dense in C order in `source` from `offset` on: a contiguous array. Its bytes
// are those of record `record` of `guarded_by`, which can verify them; null: nobody can.
std::shared_ptr<const ChunkGrid> make_mapped_grid(
    DType dtype, Shape shape, SourcePtr source, std::uint64_t offset,
    std::shared_ptr<const Checksums> guarded_by = nullptr, std::uint64_t record = 0);

}  // namespace npyfs
