// SPDX-License-Identifier: Apache-2.0

#include "formats/zarr/shard.h"

#include <fmt/format.h>

#include <limits>

#include "formats/bytes/box.h"
#include "formats/bytes/byte_range.h"
#include "formats/bytes/endian.h"
#include "formats/bytes/error.h"

namespace npyfs {

namespace {

// Offset and size of an inner chunk that was never written.
constexpr std::uint64_t kNowhere = std::numeric_limits<std::uint64_t>::max();

class Shard : public Codec {
 public:
  Shard(ShardLayout layout, CodecChain inner, std::vector<std::byte> fill)
      : Codec("sharding_indexed"),
        layout_(std::move(layout)),
        inner_(std::move(inner)),
        fill_(std::move(fill)) {}

  std::optional<std::size_t> decode(std::span<const std::byte> in,
                                    std::span<std::byte> out) const override {
    const std::uint64_t nbytes = *element_count(layout_.shard_shape) * layout_.element_nbytes;
    if (out.size() < nbytes) {
      return std::nullopt;
    }
    // The index is no larger than what is there, so neither is what it decodes to.
    const std::uint64_t at = index_offset(layout_, in.size());
    Buffer index(layout_.index_nbytes());
    layout_.index_codecs.decode(in.subspan(at, layout_.stored_index_nbytes), index.bytes());
    Buffer chunk(layout_.inner_nbytes());
    Shape place(layout_.grid_shape.size());
    std::uint64_t number = 0;
    std::uint64_t decoded_nbytes = 0;
    do {
      if (const auto inner = find_inner(index.bytes(), number, in.size())) {
        // Chunks of a shard lie apart: an index that names one of them again and again is no index.
        decoded_nbytes += inner->nbytes;
        if (decoded_nbytes > in.size()) {
          throw Error(ErrorKind::kCorrupt,
                      "the chunks of an inner shard overlap, expected them apart; the chunk is "
                      "damaged");
        }
        inner_.decode(in.subspan(inner->offset, inner->nbytes), chunk.bytes());
      } else {
        fill_elements(chunk.bytes(), fill_);
      }
      put(chunk, place, out);
      ++number;
    } while (advance(place, layout_.grid_shape));
    return nbytes;
  }

 private:
  void put(const Buffer& chunk, const Shape& place, std::span<std::byte> out) const {
    Shape begin(place.size());
    for (std::size_t axis = 0; axis < begin.size(); ++axis) {
      begin[axis] = place[axis] * layout_.inner_shape[axis];
    }
    copy_box({chunk.bytes().data(), layout_.inner_shape}, Shape(place.size()),
             {out.data(), layout_.shard_shape}, begin, layout_.inner_shape, layout_.element_nbytes);
  }

  ShardLayout layout_;
  CodecChain inner_;
  std::vector<std::byte> fill_;
};

}  // namespace

std::uint64_t index_offset(const ShardLayout& layout, std::uint64_t shard_nbytes) {
  if (shard_nbytes < layout.stored_index_nbytes) {
    throw Error(ErrorKind::kCorrupt,
                fmt::format("the shard has {} bytes, expected its index of {} and more",
                            shard_nbytes, layout.stored_index_nbytes));
  }
  return layout.index_first ? 0 : shard_nbytes - layout.stored_index_nbytes;
}

std::optional<InnerPlace> find_inner(std::span<const std::byte> index, std::uint64_t number,
                                     std::uint64_t shard_nbytes) {
  const InnerPlace place{load_le<std::uint64_t>(index.data() + number * 16),
                         load_le<std::uint64_t>(index.data() + number * 16 + 8)};
  if (place.offset == kNowhere && place.nbytes == kNowhere) {
    return std::nullopt;
  }
  if (!lies_within(place.offset, place.nbytes, shard_nbytes)) {
    throw Error(ErrorKind::kCorrupt,
                fmt::format("the shard's index has inner chunk {} at {} with {} bytes, expected it "
                            "within the {} of the shard",
                            number, place.offset, place.nbytes, shard_nbytes));
  }
  return place;
}

CodecPtr make_shard_codec(ShardLayout layout, CodecChain inner, std::vector<std::byte> fill) {
  return std::make_unique<Shard>(std::move(layout), std::move(inner), std::move(fill));
}

}  // namespace npyfs
