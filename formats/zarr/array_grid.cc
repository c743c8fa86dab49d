// SPDX-License-Identifier: Apache-2.0

#include "formats/zarr/array_grid.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "formats/bytes/box.h"
#include "formats/bytes/byte_range.h"
#include "formats/bytes/error.h"
#include "formats/zarr/plain_members.h"

namespace npyfs {

namespace {

// Above this an index is not decoded before the shard is known to be large enough for it.
constexpr std::uint64_t kSmallIndexNbytes = std::uint64_t{1} << 20;

// 2^64-1 where it does not fit.
std::uint64_t chunk_nbytes_of(const ArrayParts& parts) {
  const auto count = element_count(parts.pipeline.chunk_shape);
  const auto nbytes = count ? checked_mul(*count, parts.dtype.itemsize) : std::nullopt;
  return nbytes.value_or(UINT64_MAX);
}

std::shared_ptr<const ArrayValues> make_values(const ArrayParts& parts) {
  ArrayValues::Parts values;
  values.storage = parts.storage;
  values.opened_at_ns = parts.opened_at_ns;
  values.prefix = parts.prefix;
  values.keys = parts.keys;
  values.grid_shape = grid_shape_of(parts.shape, parts.stored_shape);
  values.metadata = parts.metadata;
  values.chunk_nbytes = parts.pipeline.is_plain() ? chunk_nbytes_of(parts) : 0;
  values.fill = parts.fill;
  values.note_chunks(*parts.notes_left);
  return std::make_shared<const ArrayValues>(std::move(values));
}

std::string shape_of_chunks(const ArrayParts& parts) {
  return fmt::format("chunks of {}", fmt::join(parts.pipeline.chunk_shape, "x"));
}

std::string coded_storage(const ArrayParts& parts) {
  const std::string codecs = parts.pipeline.chain.text();
  return fmt::format("{} {}", codecs.empty() ? "plain" : codecs, shape_of_chunks(parts));
}

// What every kind of grid has: the stored chunks and how one is decoded.
class ZarrGrid : public DecodedGrid {
 public:
  const std::shared_ptr<const ArrayValues>& shared_values() const { return values_; }

 protected:
  ZarrGrid(ArrayParts parts, std::shared_ptr<const ArrayValues> values, bool clipped,
           std::string storage)
      : DecodedGrid({parts.dtype, parts.shape, parts.pipeline.chunk_shape, clipped},
                    std::move(parts.fill), std::move(storage)),
        pipeline_(std::move(parts.pipeline)),
        whole_nbytes_(*element_count(pipeline_.chunk_shape) * parts.dtype.itemsize),
        values_(std::move(values)) {}

  // Decodes `stored` into `out`, which lacks what hangs over the array's end.
  void decode_stored(std::uint64_t chunk, std::span<const std::byte> stored,
                     std::span<std::byte> out) const {
    if (out.size() == whole_nbytes_) {
      pipeline_.chain.decode(stored, out);
      return;
    }
    Buffer whole(whole_nbytes_);
    pipeline_.chain.decode(stored, whole.bytes());
    const Shape left = stored_shape(chunk);
    const Shape begin(left.size());
    copy_box({whole.bytes().data(), chunk_shape()}, begin, {out.data(), left}, begin, left,
             dtype().itemsize);
  }

  const Pipeline& pipeline() const { return pipeline_; }
  const ArrayValues& values() const { return *values_; }
  std::uint64_t whole_nbytes() const { return whole_nbytes_; }

 private:
  Pipeline pipeline_;
  std::uint64_t whole_nbytes_;  // of a chunk with what hangs over
  std::shared_ptr<const ArrayValues> values_;
};

// Chunks whose bytes are the elements.
class PlainGrid : public ZarrGrid {
 public:
  PlainGrid(ArrayParts parts, std::shared_ptr<const ArrayValues> values,
            std::optional<PlainMembers> members, std::string storage)
      : ZarrGrid(std::move(parts), std::move(values), false, std::move(storage)),
        members_(std::move(members)) {
    const auto total = checked_mul(chunk_count(), whole_nbytes());
    if (!total || *total > INT64_MAX) {
      throw Error(ErrorKind::kTooLarge, "the chunks of the array exceed 2^63 bytes");
    }
  }

  ChunkPlace locate(std::uint64_t chunk) const override {
    if (members_) {
      return members_->locate(chunk);
    }
    ChunkPlace place;
    place.kind = ChunkPlace::Kind::kMapped;
    place.extent = {&values(), chunk * whole_nbytes(), whole_nbytes()};
    return place;
  }

  // Of a deflated member.
  void decode(std::uint64_t chunk, std::span<std::byte> out,
              DecodeContext& /*context*/) const override {
    const auto value = values().open_chunk(chunk);
    if (!value || value->nbytes() != out.size()) {
      throw values().size_error(chunk, value ? value->nbytes() : 0);
    }
    value->read(0, out);
  }

 private:
  std::optional<PlainMembers> members_;  // nothing: chunks are files
};

// Chunks that codecs made.
class CodedGrid : public ZarrGrid {
 public:
  CodedGrid(ArrayParts parts, std::shared_ptr<const ArrayValues> values, std::string storage)
      : ZarrGrid(std::move(parts), std::move(values), true, std::move(storage)),
        most_stored_nbytes_(pipeline().chain.most_stored_nbytes(whole_nbytes())) {}

  bool was_written(std::uint64_t chunk, DecodeContext& /*context*/) const override {
    return values().open_chunk(chunk).has_value();
  }

  void decode(std::uint64_t chunk, std::span<std::byte> out,
              DecodeContext& /*context*/) const override {
    const auto stored = values().read_chunk(chunk, most_stored_nbytes_);
    if (!stored) {
      fill_elements(out, fill_value());
      return;
    }
    values().name_damage(chunk, [&] { decode_stored(chunk, stored->bytes(), out); });
  }

 private:
  std::uint64_t most_stored_nbytes_;
};

// The indices of an array's shards, each decoded once and held by the cache.
class ShardIndices : public ChunkSource {
 public:
  ShardIndices(const ShardLayout& layout, const ArrayValues& values)
      : layout_(layout), values_(values) {}

  std::uint64_t chunk_nbytes(std::uint64_t /*shard*/) const override {
    return layout_.index_nbytes();
  }

  void decode(std::uint64_t shard, std::span<std::byte> out,
              DecodeContext& /*context*/) const override {
    const auto value = values_.open_chunk(shard);
    if (!value) {
      // As if every inner chunk were marked as never written.
      std::fill(out.begin(), out.end(), std::byte{0xff});
      return;
    }
    std::uint64_t at = 0;
    values_.name_damage(shard, [&] { at = index_offset(layout_, value->nbytes()); });
    Buffer stored(layout_.stored_index_nbytes);
    value->read(at, stored.bytes());
    values_.name_damage(shard, [&] { layout_.index_codecs.decode(stored.bytes(), out); });
  }

 private:
  const ShardLayout& layout_;
  const ArrayValues& values_;
};

// Inner chunks of shards, each read by itself.
class ShardedGrid : public ZarrGrid {
 public:
  ShardedGrid(ArrayParts parts, std::shared_ptr<const ArrayValues> values, std::string storage,
              ChunkCache& cache)
      : ZarrGrid(std::move(parts), std::move(values), true, std::move(storage)),
        cache_(cache),
        indices_(*pipeline().shard, ZarrGrid::values()),
        most_stored_nbytes_(pipeline().chain.most_stored_nbytes(whole_nbytes())) {
    const ShardLayout& layout = *pipeline().shard;
    per_shard_.resize(shape().size());
    for (std::size_t axis = 0; axis < per_shard_.size(); ++axis) {
      per_shard_[pipeline().shard_order[axis]] = layout.grid_shape[axis];
    }
    for (std::size_t axis = 0; axis < per_shard_.size(); ++axis) {
      shard_grid_.push_back((grid_shape()[axis] + per_shard_[axis] - 1) / per_shard_[axis]);
    }
  }

  bool was_written(std::uint64_t chunk, DecodeContext& context) const override {
    const Place at = place_of(chunk);
    const auto value = values().open_chunk(at.shard);
    if (!value) {
      return false;
    }
    value->require_intact(context);
    return find_stored(at, value->nbytes()).has_value();
  }

  void decode(std::uint64_t chunk, std::span<std::byte> out,
              DecodeContext& context) const override {
    const Place at = place_of(chunk);
    const std::uint64_t shard = at.shard;
    const auto value = values().open_chunk(shard);
    if (!value) {
      fill_elements(out, fill_value());
      return;
    }
    value->require_intact(context);
    const auto place = find_stored(at, value->nbytes());
    if (!place) {
      fill_elements(out, fill_value());
      return;
    }
    Buffer stored(place->nbytes);
    value->read(place->offset, stored.bytes());
    values().name_damage(shard, [&] { decode_stored(chunk, stored.bytes(), out); });
  }

 private:
  struct Place {
    std::uint64_t shard;
    std::uint64_t inner;  // its number in the shard's index
  };

  // In its shard of `shard_nbytes` bytes; nothing where it was never written.
  std::optional<InnerPlace> find_stored(const Place& at, std::uint64_t shard_nbytes) const {
    const ShardLayout& layout = *pipeline().shard;
    if (layout.index_nbytes() > kSmallIndexNbytes) {
      values().name_damage(at.shard, [&] { index_offset(layout, shard_nbytes); });
    }
    const auto index = cache_.get(indices_, at.shard);
    index->require_good({at.inner * 16, at.inner * 16 + 16});
    std::optional<InnerPlace> place;
    values().name_damage(at.shard, [&] { place = find(index->bytes, at.inner, shard_nbytes); });
    return place;
  }

  std::optional<InnerPlace> find(std::span<const std::byte> index, std::uint64_t inner,
                                 std::uint64_t shard_nbytes) const {
    const auto place = find_inner(index, inner, shard_nbytes);
    if (place && place->nbytes > most_stored_nbytes_) {
      throw Error(ErrorKind::kCorrupt,
                  fmt::format("inner chunk {} has {} bytes, expected at most {}", inner,
                              place->nbytes, most_stored_nbytes_));
    }
    return place;
  }

  Place place_of(std::uint64_t chunk) const {
    Shape at(shape().size());
    for (std::size_t axis = at.size(); axis-- > 0;) {
      at[axis] = chunk % grid_shape()[axis];
      chunk /= grid_shape()[axis];
    }
    Place place{0, 0};
    for (std::size_t axis = 0; axis < at.size(); ++axis) {
      place.shard = place.shard * shard_grid_[axis] + at[axis] / per_shard_[axis];
      const std::size_t stored_axis = pipeline().shard_order[axis];
      place.inner =
          place.inner * per_shard_[stored_axis] + at[stored_axis] % per_shard_[stored_axis];
    }
    return place;
  }

  ChunkCache& cache_;
  ShardIndices indices_;
  std::uint64_t most_stored_nbytes_;
  Shape per_shard_;   // inner chunks of a shard along each axis of the array
  Shape shard_grid_;  // shards of the array
};

// "in shards", with what it costs where they are deflated; the first stands for all.
std::string shards_text(const ArrayValues& values) {
  const auto shards = values.chunks();
  if (shards && !shards->empty()) {
    try {
      const auto member = values.storage().find_place(values.key(shards->front()));
      if (member && member->packed) {
        return fmt::format("in deflated shards, a read inflates a whole one ({} bytes)",
                           member->nbytes);
      }
    } catch (const Error&) {
      // Who reads it says what is wrong.
    }
  }
  return "in shards";
}

std::shared_ptr<const ZarrGrid> make_grid(ArrayParts parts, ChunkCache& cache) {
  auto values = make_values(parts);
  if (parts.pipeline.is_plain()) {
    auto members = PlainMembers::find(*values);
    std::string storage = members ? members->storage(shape_of_chunks(parts)) : "mapped";
    return std::make_shared<PlainGrid>(std::move(parts), std::move(values), std::move(members),
                                       std::move(storage));
  }
  if (const std::uint64_t nbytes = chunk_nbytes_of(parts); nbytes > kMostDecodedNbytes) {
    throw Error(ErrorKind::kTooLarge,
                fmt::format("a chunk of {} {} is larger than the {} bytes that npyfs decodes",
                            parts.dtype.text(), shape_text(parts.pipeline.chunk_shape),
                            kMostDecodedNbytes));
  }
  std::string storage = coded_storage(parts);
  if (parts.pipeline.shard) {
    storage += " " + shards_text(*values);
    return std::make_shared<ShardedGrid>(std::move(parts), std::move(values), std::move(storage),
                                         cache);
  }
  return std::make_shared<CodedGrid>(std::move(parts), std::move(values), std::move(storage));
}

}  // namespace

ArrayGrid make_array_grid(ArrayParts parts, ChunkCache& cache) {
  const auto grid = make_grid(std::move(parts), cache);
  return {grid, grid->shared_values()};
}

}  // namespace npyfs
