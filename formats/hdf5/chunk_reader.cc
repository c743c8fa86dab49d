// SPDX-License-Identifier: Apache-2.0

#include "formats/hdf5/chunk_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "formats/bytes/byte_range.h"
#include "formats/bytes/error.h"
#include "formats/bytes/fault_tally.h"
#include "formats/hdf5/chunk_index.h"
#include "formats/hdf5/chunk_table.h"
#include "formats/hdf5/filters.h"
#include "formats/hdf5/superblock.h"

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
                                             : ~std::uint32_t{0} >> (32 - storage.filters.size())),
        most_stored_nbytes_(chunk_nbytes(0) > kMostDecodedNbytes
                                ? 0
                                : chain_.codecs.most_stored_nbytes(chunk_nbytes(0))) {}

  // ---- while it is made

  void take(std::span<const std::uint64_t> place, const StoredChunk& chunk) {
    std::uint64_t number = 0;
    for (std::size_t axis = 0; axis < grid_shape().size(); ++axis) {
      // The axes of the element type are one chunk long.
      const std::uint64_t at = axis < place.size() ? place[axis] : 0;
      if (at >= grid_shape()[axis]) {
        // The library takes away what an array that is made smaller loses.
        if (++outside_ == 1) {
          first_outside_.assign(place.begin(), place.end());
        }
        return;
      }
      number = number * grid_shape()[axis] + at;
    }
    table_.add(number, chunk);
  }

  void take_row(ChunkRow row) { row_ = std::move(row); }

  // `warn` gets a line for what is damaged of it.
  void finish(const std::function<void(const std::string&)>& warn) {
    if (!table_.sort()) {
      throw file_error(ErrorKind::kCorrupt, source_->name(),
                       fmt::format("the index of {} names a chunk twice; the file is damaged",
                                   printable(path_)));
    }
    // Where an array is made empty the library leaves the chunk of an index of one.
    if (outside_ > 0 && chunk_count() > 0) {
      unnamed_damage_ = Damage{
          file_error(ErrorKind::kCorrupt, source_->name(),
                     outside_text() + "; a chunk that the index does not name may be one of them"),
          chunk_nbytes(0)};
      warn(
          fmt::format("{}: {}; chunks that it does not name cannot be read: the file is damaged, "
                      "copy it again, or, where a writer has it open, mount it again",
                      printable(source_->name()), outside_text()));
    }
    FaultTally damaged("chunks");
    std::uint64_t unfiltered = 0;
    for (std::size_t i = 0; i < table_.size(); ++i) {
      const std::uint64_t chunk = table_.number(i);
      const Fault fault = fault_of(chunk, table_.at(i));
      if (fault == Fault::kFilter) {
        ++unfiltered;
      } else if (fault != Fault::kNone) {
        const std::string text = text_of(fault, table_.at(i));
        damaged.add(text, damage_at(chunk, table_.at(i), text).what());
        keep_damage(chunk, table_.at(i), fault);
      }
    }
    if (row_ && chunk_count() > 0) {
      const std::uint64_t last = chunk_count() - 1;
      if (const Fault fault = fault_of(last, *find(last)); fault != Fault::kNone) {
        // Which of the others lie behind the end as well is found when they are read.
        keep_damage(last, *find(last), fault);
        further_damage_ =
            Damage{file_error(ErrorKind::kCorrupt, source_->name(),
                              fmt::format("a chunk of {} is damaged: {}", printable(path_),
                                          text_of(fault, *find(last)))),
                   chunk_nbytes(last)};
        warn(damaged_.at(last).error.what());
      }
    }
    if (unfiltered > 0) {
      filter_damage_ =
          Damage{file_error(ErrorKind::kCorrupt, source_->name(),
                            fmt::format("{} needs the filter {}, which npyfs does not have",
                                        printable(path_), printable(chain_.unknown_names))),
                 chunk_nbytes(0)};
      warn(fmt::format("{}; {} of its {} chunks cannot be read", filter_damage_->error.what(),
                       unfiltered, table_.size()));
    }
    damaged.for_each([&](const std::string& text, std::uint64_t count) {
      warn(fmt::format("{}; {} of its {} chunks cannot be read", text, count, table_.size()));
    });
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
    const auto stored = find(chunk);
    if (!stored) {
      if (unnamed_damage_) {
        place.kind = ChunkPlace::Kind::kDamaged;
        place.damage = &*unnamed_damage_;
      }
      return place;
    }
    if (const Fault fault = fault_of(chunk, *stored); fault != Fault::kNone) {
      place.kind = ChunkPlace::Kind::kDamaged;
      place.damage = damage_of(chunk, fault);
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
    const StoredChunk stored = *find(chunk);
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

  // A writer's chunks are in the file before the shape that they are part of.
  std::string outside_text() const {
    const auto own = [&](Shape lengths) {
      lengths.resize(lengths.size() - extra_axes_);
      return shape_text(lengths);
    };
    return fmt::format(
        "the index of {} names {} at {} in a grid of {}, outside its shape {}", printable(path_),
        outside_ == 1 ? "a chunk" : fmt::format("{} chunks, the first of them", outside_),
        shape_text(first_outside_), own(grid_shape()), own(shape()));
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

  std::optional<StoredChunk> find(std::uint64_t chunk) const {
    if (!row_) {
      return table_.find(chunk);
    }
    const Shape begin = chunk_begin(chunk);
    std::uint64_t number = 0;
    for (std::size_t axis = 0; axis < row_->grid_shape.size(); ++axis) {
      number = number * row_->grid_shape[axis] + begin[axis] / chunk_shape()[axis];
    }
    return StoredChunk{row_->address + number * row_->nbytes, row_->nbytes, 0};
  }

  // What is known to be wrong before the chunk is read.
  enum class Fault { kNone, kCut, kSize, kFilter, kTooLarge, kTooMuch };

  Fault fault_of(std::uint64_t chunk, const StoredChunk& stored) const {
    const std::uint64_t nbytes = chunk_nbytes(chunk);
    if (!lies_within(stored.address, stored.nbytes, source_->nbytes())) {
      return Fault::kCut;
    }
    if (is_plain(chunk, stored)) {
      return stored.nbytes == nbytes ? Fault::kNone : Fault::kSize;
    }
    if ((chain_.unknown & ~stored.filter_mask) != 0) {
      return Fault::kFilter;
    }
    if (nbytes > kMostDecodedNbytes) {
      return Fault::kTooLarge;
    }
    return stored.nbytes > most_stored_nbytes_ ? Fault::kTooMuch : Fault::kNone;
  }

  // The lines of very many damaged chunks would take more memory than their index.
  void keep_damage(std::uint64_t chunk, const StoredChunk& stored, Fault fault) {
    constexpr std::size_t kMostLines = 1000;
    if (damaged_.size() < kMostLines) {
      const std::uint64_t nbytes = chunk_nbytes(chunk);
      damaged_.emplace(chunk, Damage{damage_at(chunk, stored, text_of(fault, stored)), nbytes});
    } else if (!further_damage_) {
      further_damage_ = Damage{
          file_error(
              ErrorKind::kCorrupt, source_->name(),
              fmt::format("a chunk of {} is damaged, as {} others are that have been told of",
                          printable(path_), damaged_.size())),
          chunk_nbytes(chunk)};
    }
  }

  const Damage* damage_of(std::uint64_t chunk, Fault fault) const {
    if (fault == Fault::kFilter) {
      return &*filter_damage_;
    }
    const auto known = damaged_.find(chunk);
    return known != damaged_.end() ? &known->second : &*further_damage_;
  }

  std::string text_of(Fault fault, const StoredChunk& stored) const {
    switch (fault) {
      case Fault::kCut:
        return fmt::format("it has {} bytes, but the file ends at byte {}", stored.nbytes,
                           source_->nbytes());
      case Fault::kSize:
        return fmt::format("it has {} bytes, expected {}", stored.nbytes, chunk_nbytes(0));
      case Fault::kTooLarge:
        return fmt::format("it decodes to {} bytes, expected at most {}", chunk_nbytes(0),
                           kMostDecodedNbytes);
      default:
        return fmt::format("it has {} bytes, expected at most {}", stored.nbytes,
                           most_stored_nbytes_);
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
  std::uint64_t most_stored_nbytes_;
  ChunkTable table_;
  std::uint64_t outside_ = 0;                // chunks named by the index that are not the array's
  Shape first_outside_;                      // its place in the grid of chunks
  std::optional<ChunkRow> row_;              // then the table is empty
  std::map<std::uint64_t, Damage> damaged_;  // the first ones
  std::optional<Damage> further_damage_;     // of all others
  std::optional<Damage> filter_damage_;      // of all that need a filter that is not known here
  std::optional<Damage> all_damaged_;
  std::optional<Damage> unnamed_damage_;  // of those that are not in the index
};

// Where an array's chunks are looked for.
struct Search {
  const ArrayDescription& array;
  const ChunkedStorage& storage;
  const Hdf5Process& process;
  Hdf5Process::Clock::time_point end;

  const SourcePtr& source() const { return process.source(); }
  // Along the data set's own axes.
  Shape own(const Shape& shape) const {
    return {shape.begin(), shape.end() - static_cast<std::ptrdiff_t>(storage.extra_axes)};
  }
};

std::shared_ptr<ChunkReader> make_empty(const Search& search) {
  return std::make_shared<ChunkReader>(search.array, search.storage, search.source(),
                                       make_filter_chain(search.storage.filters));
}

std::shared_ptr<ChunkReader> find_in_file(const Search& search) {
  const ChunkedStorage& storage = search.storage;
  const ByteSource& source = *search.source();
  const Superblock superblock = read_superblock(source, storage.base).value_or(Superblock{});
  auto reader = make_empty(search);
  auto row = read_chunk_index(source,
                              {storage.base,
                               {superblock.address_nbytes, superblock.length_nbytes},
                               storage.header,
                               search.own(search.array.shape),
                               search.own(storage.chunk_shape),
                               reader->chunk_nbytes(0),
                               !storage.filters.empty()},
                              [&](std::span<const std::uint64_t> place, const StoredChunk& chunk) {
                                reader->take(place, chunk);
                              });
  if (row) {
    reader->take_row(std::move(*row));
  }
  return reader;
}

// Takes the chunks that a frame of the library's answer names.
void take_chunks(const Search& search, const WireFrame& frame, ChunkReader& reader) {
  const std::string& name = search.source()->name();
  if (frame.kind == FrameKind::kFailure) {
    throw file_error(ErrorKind::kCorrupt, name, WireFrameReader(frame.bytes, name).take_text());
  }
  if (frame.kind != FrameKind::kData && frame.kind != FrameKind::kEnd) {
    throw file_error(ErrorKind::kCorrupt, name, "the HDF5 library answers another question");
  }
  const Shape chunk_shape = search.own(search.storage.chunk_shape);
  for (ChunkEntry& entry : read_chunk_entries(frame.bytes, chunk_shape.size(), name)) {
    for (std::size_t axis = 0; axis < chunk_shape.size(); ++axis) {
      if (entry.offset[axis] % chunk_shape[axis] != 0 || entry.nbytes > UINT32_MAX) {
        throw file_error(ErrorKind::kCorrupt, name,
                         fmt::format("{}: a chunk of {} bytes is said to begin within another",
                                     search.array.path, entry.nbytes));
      }
      entry.offset[axis] /= chunk_shape[axis];
    }
    reader.take(entry.offset,
                {entry.address, static_cast<std::uint32_t>(entry.nbytes), entry.filter_mask});
  }
}

std::shared_ptr<ChunkReader> find_by_library(const Search& search) {
  auto reader = make_empty(search);
  WireFrameWriter request(FrameKind::kChunks);
  request.add_text(search.array.path);
  search.process.ask(request, search.end, [&](const WireFrame& frame) {
    take_chunks(search, frame, *reader);
    return frame.kind == FrameKind::kEnd;
  });
  return reader;
}

// The library knows kinds of indexes that are not known here.
std::shared_ptr<ChunkReader> find_chunks(const Search& search) {
  try {
    return find_in_file(search);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kUnsupported) {
      throw;
    }
  }
  return find_by_library(search);
}

}  // namespace

std::shared_ptr<const ChunkGrid> make_chunk_reader(
    const ArrayDescription& array, const ChunkedStorage& storage, const Hdf5Process& process,
    Hdf5Process::Clock::time_point end, const std::function<void(const std::string&)>& warn) {
  const Search search{array, storage, process, end};
  try {
    auto reader = find_chunks(search);
    reader->finish(warn);
    return reader;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kCorrupt) {
      throw;
    }
    warn(fmt::format("{}; {} cannot be read", error.what(), printable(array.path)));
    auto reader = make_empty(search);
    reader->damage_all(error);
    return reader;
  }
}

}  // namespace npyfs
