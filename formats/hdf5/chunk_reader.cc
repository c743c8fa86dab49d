// SPDX-License-Identifier: Apache-2.0

#include "formats/hdf5/chunk_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "formats/bytes/byte_range.h"
#include "formats/bytes/error.h"
#include "formats/hdf5/chunk_index.h"
#include "formats/hdf5/chunk_table.h"
#include "formats/hdf5/filters.h"

namespace npyfs {

namespace {

class ChunkReader : public ChunkGrid {
 public:
  ChunkReader(const ArrayDescription& array, const ChunkedStorage& storage, SourcePtr source,
              FilterChain chain)
      : ChunkGrid({array.dtype, array.shape, storage.chunk_shape, false}, array.fill_value,
                  storage_text(storage, chain)),
        path_(array.path),
        source_(std::move(source)),
        chain_(std::move(chain)),
        edges_unfiltered_(storage.edges_unfiltered),
        extra_axes_(storage.extra_axes),
        all_filters_(storage.filters.empty() ? 0
                                             : ~std::uint32_t{0} >> (32 - storage.filters.size())) {
  }

  // ---- while it is made

  void take(std::span<const std::uint64_t> place, const StoredChunk& chunk) {
    std::uint64_t number = 0;
    for (std::size_t axis = 0; axis < grid_shape().size(); ++axis) {
      // The axes of the element type are one chunk long.
      const std::uint64_t at = axis < place.size() ? place[axis] : 0;
      if (at >= grid_shape()[axis]) {
        return;  // left from before the array was made smaller
      }
      number = number * grid_shape()[axis] + at;
    }
    table_.add(number, chunk);
  }

  void finish() {
    if (!table_.sort()) {
      throw file_error(ErrorKind::kCorrupt, source_->name(),
                       fmt::format("the index of {} names a chunk twice; the file is damaged",
                                   printable(path_)));
    }
    for (std::size_t i = 0; i < table_.size(); ++i) {
      check(table_.number(i), table_.at(i));
    }
  }

  // Nothing is known of where its chunks lie.
  void damage_all(const Error& why) { all_damaged_ = Damage{why, std::nullopt}; }

  // ---- afterwards

  ChunkPlace locate(std::uint64_t chunk) const override {
    ChunkPlace place;
    if (all_damaged_) {
      place.kind = ChunkPlace::Kind::kDamaged;
      place.damage = &*all_damaged_;
      return place;
    }
    const StoredChunk* const stored = table_.find(chunk);
    if (stored == nullptr) {
      return place;
    }
    if (const auto damaged = damaged_.find(chunk); damaged != damaged_.end()) {
      place.kind = ChunkPlace::Kind::kDamaged;
      place.damage = &damaged->second;
    } else if (is_plain(chunk, *stored)) {
      place.kind = ChunkPlace::Kind::kMapped;
      place.extent = {source_.get(), stored->address, stored->nbytes};
    } else {
      place.kind = ChunkPlace::Kind::kDecoded;
    }
    return place;
  }

  void decode(std::uint64_t chunk, std::span<std::byte> out,
              DecodeContext& /*context*/) const override {
    const StoredChunk& stored = *table_.find(chunk);
    Buffer bytes(stored.nbytes);
    source_->read_at(stored.address, bytes.bytes());
    try {
      chain_.codecs.decode(bytes.bytes(), out, stored.filter_mask);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kCorrupt) {
        throw;
      }
      throw damage_at(chunk, stored, error.what());
    }
  }

 private:
  static std::string storage_text(const ChunkedStorage& storage, const FilterChain& chain) {
    std::string shape;
    const std::size_t own = storage.chunk_shape.size() - storage.extra_axes;
    for (std::size_t axis = 0; axis < own; ++axis) {
      shape += fmt::format("{}{}", axis > 0 ? "x" : "", storage.chunk_shape[axis]);
    }
    return fmt::format("{} chunks of {}", chain.text.empty() ? "mapped" : chain.text, shape);
  }

  // Whether the bytes in the file are those of the chunk.
  bool is_plain(std::uint64_t chunk, const StoredChunk& stored) const {
    return (stored.filter_mask & all_filters_) == all_filters_ ||
           (edges_unfiltered_ && hangs_over(chunk));
  }

  bool hangs_over(std::uint64_t chunk) const {
    const Shape begin = chunk_begin(chunk);
    for (std::size_t axis = 0; axis < begin.size(); ++axis) {
      if (shape()[axis] - begin[axis] < chunk_shape()[axis]) {
        return true;
      }
    }
    return false;
  }

  // What is known to be wrong before the chunk is read.
  void check(std::uint64_t chunk, const StoredChunk& stored) {
    const std::uint64_t nbytes = chunk_nbytes(chunk);
    const bool plain = is_plain(chunk, stored);
    std::string text;
    if (!lies_within(stored.address, stored.nbytes, source_->nbytes())) {
      text = fmt::format("it has {} bytes, but the file ends at byte {}", stored.nbytes,
                         source_->nbytes());
    } else if (plain && stored.nbytes != nbytes) {
      text = fmt::format("it has {} bytes, expected {}", stored.nbytes, nbytes);
    } else if (plain) {
      return;
    } else if ((chain_.unknown & ~stored.filter_mask) != 0) {
      text = fmt::format("it needs the filter {}, which npyfs does not have",
                         printable(chain_.unknown_names));
    } else if (nbytes > kMostDecodedNbytes) {
      text = fmt::format("it decodes to {} bytes, expected at most {}", nbytes, kMostDecodedNbytes);
    } else if (stored.nbytes > chain_.codecs.most_stored_nbytes(nbytes)) {
      text = fmt::format("it has {} bytes, expected at most {}", stored.nbytes,
                         chain_.codecs.most_stored_nbytes(nbytes));
    }
    if (!text.empty()) {
      damaged_.emplace(chunk, Damage{damage_at(chunk, stored, text), nbytes});
    }
  }

  Error damage_at(std::uint64_t chunk, const StoredChunk& stored, const std::string& text) const {
    Shape begin = chunk_begin(chunk);
    begin.resize(begin.size() - extra_axes_);
    return corrupt_at(source_->name(), stored.address,
                      fmt::format("the chunk of {} from element {} on: {}", printable(path_),
                                  shape_text(begin), text));
  }

  std::string path_;
  SourcePtr source_;
  FilterChain chain_;
  bool edges_unfiltered_;
  std::size_t extra_axes_;
  std::uint32_t all_filters_;  // a bit for each
  ChunkTable table_;
  std::map<std::uint64_t, Damage> damaged_;
  std::optional<Damage> all_damaged_;
};

using Attempt = std::function<void(ChunkReader& reader)>;

std::shared_ptr<const ChunkGrid> all_damaged(std::shared_ptr<ChunkReader> reader, const Error& why,
                                             const ArrayDescription& array,
                                             const std::function<void(const std::string&)>& warn) {
  warn(fmt::format("{}; {} cannot be read", why.what(), printable(array.path)));
  reader->damage_all(why);
  return reader;
}

}  // namespace

std::shared_ptr<const ChunkGrid> make_chunk_reader(
    const ArrayDescription& array, const ChunkedStorage& storage, const Hdf5Process& process,
    Hdf5Process::Clock::time_point end, const std::function<void(const std::string&)>& warn) {
  const SourcePtr& source = process.source();
  const auto make = [&] {
    return std::make_shared<ChunkReader>(array, storage, source,
                                         make_filter_chain(storage.filters));
  };
  const auto own = static_cast<std::ptrdiff_t>(array.shape.size() - storage.extra_axes);
  const Shape own_shape(array.shape.begin(), array.shape.begin() + own);
  const Shape own_chunk(storage.chunk_shape.begin(), storage.chunk_shape.begin() + own);
  const Attempt from_file = [&](ChunkReader& reader) {
    read_chunk_index(*source,
                     {storage.base, storage.header, own_shape, own_chunk, reader.chunk_nbytes(0),
                      !storage.filters.empty()},
                     [&](std::span<const std::uint64_t> place, const StoredChunk& chunk) {
                       reader.take(place, chunk);
                     });
  };
  const Attempt from_library = [&](ChunkReader& reader) {
    FrameWriter request(FrameKind::kChunks);
    request.add_text(array.path);
    process.ask(request, end, [&](const Frame& frame) {
      if (frame.kind == FrameKind::kFailure) {
        throw file_error(ErrorKind::kCorrupt, source->name(),
                         FrameReader(frame.bytes, source->name()).take_text());
      }
      if (frame.kind != FrameKind::kData && frame.kind != FrameKind::kEnd) {
        throw file_error(ErrorKind::kCorrupt, source->name(),
                         "the HDF5 library answers another question");
      }
      for (ChunkEntry& entry : read_chunk_entries(frame.bytes, own_shape.size(), source->name())) {
        for (std::size_t axis = 0; axis < own_chunk.size(); ++axis) {
          if (entry.offset[axis] % own_chunk[axis] != 0 || entry.nbytes > UINT32_MAX) {
            throw file_error(ErrorKind::kCorrupt, source->name(),
                             fmt::format("{}: a chunk of {} bytes is said to begin within another",
                                         array.path, entry.nbytes));
          }
          entry.offset[axis] /= own_chunk[axis];
        }
        reader.take(entry.offset,
                    {entry.address, static_cast<std::uint32_t>(entry.nbytes), entry.filter_mask});
      }
      return frame.kind == FrameKind::kEnd;
    });
  };
  const auto attempt = [&](const Attempt& index) {
    auto reader = make();
    index(*reader);
    reader->finish();
    return reader;
  };
  try {
    return attempt(from_file);
  } catch (const Error& error) {
    // The library knows kinds of indexes that are not known here.
    if (error.kind() != ErrorKind::kUnsupported) {
      if (error.kind() != ErrorKind::kCorrupt) {
        throw;
      }
      return all_damaged(make(), error, array, warn);
    }
  }
  try {
    return attempt(from_library);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kCorrupt) {
      throw;
    }
    return all_damaged(make(), error, array, warn);
  }
}

}  // namespace npyfs
