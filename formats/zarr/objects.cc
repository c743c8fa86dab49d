// SPDX-License-Identifier: Apache-2.0

#include "formats/zarr/objects.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "formats/bytes/box.h"
#include "formats/bytes/byte_range.h"
#include "formats/bytes/endian.h"
#include "formats/bytes/error.h"
#include "formats/bytes/fault_tally.h"
#include "formats/bytes/strict_reader.h"
#include "formats/bytes/utf8.h"

namespace npyfs {

namespace {

// Elements that are counted at mount, those that were never written included.
constexpr std::uint64_t kMostElements = std::uint64_t{1} << 28;
constexpr std::uint64_t kMostChunks = std::uint64_t{1} << 20;
// Where each of these begins is kept in memory.
constexpr std::uint64_t kMostRaggedElements = std::uint64_t{1} << 26;
constexpr std::uint32_t kLengthNbytes = 8;

using Stored = std::span<const std::byte>;
using Cell = std::span<std::byte>;
// Writes one item as a cell of fixed size. Throws kCorrupt.
using WriteCell = std::function<void(Stored item, Cell cell)>;

// The list of a chunk as cells.
class VariableLength : public Codec {
 public:
  VariableLength(std::uint32_t cell_nbytes, WriteCell write)
      : Codec("variable length"), cell_nbytes_(cell_nbytes), write_(std::move(write)) {}

  std::optional<std::size_t> decode(std::span<const std::byte> in,
                                    std::span<std::byte> out) const override {
    const std::uint64_t count = take_number(in);
    if (count > out.size() / cell_nbytes_) {
      return std::nullopt;
    }
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint64_t nbytes = take_number(in);
      if (nbytes > in.size()) {
        throw damaged(fmt::format("item {} has {} bytes, expected at most the {} that follow", i,
                                  nbytes, in.size()));
      }
      write_(in.first(nbytes), out.subspan(i * cell_nbytes_, cell_nbytes_));
      in = in.subspan(nbytes);
    }
    return count * cell_nbytes_;
  }

  std::uint64_t most_encoded_nbytes(std::uint64_t /*decoded_nbytes*/) const override {
    return kMostDecodedNbytes;
  }
  bool holds_more_than_cells() const override { return true; }

 private:
  std::uint64_t take_number(std::span<const std::byte>& in) const {
    if (in.size() < 4) {
      throw damaged("the list of items is cut");
    }
    const auto number = load_le<std::uint32_t>(in.data());
    in = in.subspan(4);
    return number;
  }

  std::uint32_t cell_nbytes_;
  WriteCell write_;
};

std::string_view as_text(Stored item) {
  return {reinterpret_cast<const char*>(item.data()), item.size()};
}

template <typename T>
void store(T number, Cell cell) {
  std::memcpy(cell.data(), &number, sizeof number);
}

Element make_element(std::uint32_t nbytes, const WriteCell& write, std::vector<std::byte> fill) {
  Element element;
  element.nbytes = nbytes;
  element.make_object_codec = [nbytes, write] {
    return std::make_unique<VariableLength>(nbytes, write);
  };
  element.fill = std::move(fill);
  return element;
}

// One number of 8 bytes for each item.
ArrayGrid make_lengths(const MakeGrid& make_grid, std::uint64_t fill,
                       const std::function<std::uint64_t(Stored)>& measure) {
  std::vector<std::byte> element(kLengthNbytes);
  store(fill, element);
  ArrayGrid lengths =
      make_grid(DType::simple("<u8"),
                make_element(
                    kLengthNbytes,
                    [measure](Stored item, Cell cell) { store(measure(item), cell); }, element));
  const ChunkGrid& grid = *lengths.grid;
  const auto per_chunk = element_count(grid.chunk_shape());
  const auto elements = per_chunk ? checked_mul(grid.chunk_count(), *per_chunk) : std::nullopt;
  if (!elements || *elements > kMostElements || grid.chunk_count() > kMostChunks) {
    throw Error(ErrorKind::kTooLarge,
                fmt::format("{} chunks of {} elements of variable length, expected at most {} and "
                            "{} elements in all",
                            grid.chunk_count(), shape_text(grid.chunk_shape()), kMostChunks,
                            kMostElements));
  }
  return lengths;
}

std::vector<std::uint64_t> decode_lengths(const ChunkGrid& lengths, std::uint64_t chunk,
                                          StrictReader& reader) {
  std::vector<std::uint64_t> decoded(lengths.chunk_nbytes(chunk) / kLengthNbytes);
  reader.read([&](ByteRange range,
                  Plan& plan) { plan.add_chunk(lengths, chunk, range.begin, range.nbytes()); },
              0, std::as_writable_bytes(std::span(decoded)));
  return decoded;
}

// The chunks of one step along axis 0.
struct Band {
  std::uint64_t first_chunk = 0;
  std::uint64_t chunk_count = 0;
  Shape shape;  // in elements
};

Band band_of(const ChunkGrid& grid, std::uint64_t number) {
  Band band;
  band.shape = grid.shape();
  if (band.shape.empty()) {
    band.chunk_count = 1;
    return band;
  }
  band.chunk_count = grid.chunk_count() / grid.grid_shape()[0];
  band.first_chunk = number * band.chunk_count;
  const std::uint64_t rows = grid.chunk_shape()[0];
  band.shape[0] = std::min(rows, grid.shape()[0] - number * rows);
  return band;
}

// Decodes all chunks of a band into its cells, in C order.
void decode_band(const ChunkGrid& grid, const Band& band, std::span<std::byte> cells,
                 DecodeContext& context) {
  for (std::uint64_t i = 0; i < band.chunk_count; ++i) {
    const std::uint64_t chunk = band.first_chunk + i;
    Buffer decoded(grid.chunk_nbytes(chunk));
    grid.decode(chunk, decoded.bytes(), context);
    Shape begin = grid.chunk_begin(chunk);
    if (!begin.empty()) {
      begin[0] = 0;
    }
    const Shape extent = grid.stored_shape(chunk);
    copy_box({decoded.bytes().data(), extent}, Shape(extent.size()), {cells.data(), band.shape},
             begin, extent, grid.dtype().itemsize);
  }
}

// The values of one band, one after another. Its cells are a length and room for the longest.
class BandValues : public DecodedGrid {
 public:
  BandValues(const DType& dtype, std::uint64_t count, std::shared_ptr<const ChunkGrid> cells,
             Band band)
      : DecodedGrid({dtype, {count}, {count}, true}, {}, cells->storage()),
        cells_(std::move(cells)),
        band_(std::move(band)) {}

  void decode(std::uint64_t /*chunk*/, std::span<std::byte> out,
              DecodeContext& context) const override {
    const std::uint32_t cell_nbytes = cells_->dtype().itemsize;
    Buffer cells(*element_count(band_.shape) * cell_nbytes);
    decode_band(*cells_, band_, cells.bytes(), context);
    std::size_t filled = 0;
    for (std::size_t at = 0; at < cells.bytes().size(); at += cell_nbytes) {
      const auto nbytes = load_le<std::uint64_t>(cells.bytes().data() + at);
      if (nbytes > out.size() - filled) {
        filled = out.size() + 1;
        break;
      }
      std::memcpy(out.data() + filled, cells.bytes().data() + at + kLengthNbytes, nbytes);
      filled += nbytes;
    }
    if (filled != out.size()) {
      throw Error(ErrorKind::kChanged,
                  "the values of variable length are no longer as many as when it was mounted");
    }
  }

 private:
  std::shared_ptr<const ChunkGrid> cells_;
  Band band_;
};

DType cell_type(std::uint64_t nbytes) {
  const auto dtype = DType::from_user(fmt::format("|V{}", nbytes));
  if (!dtype) {
    throw Error(ErrorKind::kTooLarge, fmt::format("an item has {} bytes", nbytes));
  }
  return *dtype;
}

std::shared_ptr<const ChunkGrid> memory_array(const DType& dtype, Shape shape,
                                              std::vector<std::byte> bytes,
                                              const std::string& name) {
  return make_mapped_grid(dtype, std::move(shape),
                          std::make_shared<MemorySource>(name, std::move(bytes)), 0);
}

}  // namespace

StoredArray open_texts(const std::string& name, const std::string& fill, const MakeGrid& make_grid,
                       const OpenContext& context) {
  const ArrayGrid lengths = make_lengths(make_grid, utf8_length(fill),
                                         [](Stored item) { return utf8_length(as_text(item)); });
  std::uint64_t longest = 1;
  FaultTally damaged("chunks");
  StrictReader reader(*context.verifier);
  for (std::uint64_t chunk = 0; chunk < lengths.grid->chunk_count(); ++chunk) {
    try {
      for (const std::uint64_t length : decode_lengths(*lengths.grid, chunk, reader)) {
        longest = std::max(longest, length);
      }
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kCorrupt) {
        throw;
      }
      damaged.add(error);
    }
  }
  damaged.for_each([&](const std::string& text, std::uint64_t count) {
    context.warn(fmt::format("{}; {} of the array's {} chunks cannot be read", text, count,
                             lengths.grid->chunk_count()));
  });
  const auto dtype = DType::from_user(fmt::format("<U{}", longest));
  if (!dtype) {
    throw Error(ErrorKind::kTooLarge, fmt::format("a text has {} characters", longest));
  }
  std::vector<std::byte> element(dtype->itemsize);
  write_utf32(fill, element);
  const ArrayGrid texts = make_grid(*dtype, make_element(
                                                dtype->itemsize,
                                                [](Stored item, Cell cell) {
                                                  std::fill(cell.begin(), cell.end(), std::byte{0});
                                                  write_utf32(as_text(item), cell);
                                                },
                                                element));
  StoredArray array;
  array.name = name;
  array.parts = {texts.grid};
  array.sources = {texts.source};
  return array;
}

std::vector<StoredArray> open_ragged(const std::string& name, const DType& dtype,
                                     const MakeGrid& make_grid, const OpenContext& context) {
  const std::uint32_t itemsize = dtype.itemsize;
  const auto measure = [itemsize](Stored item) -> std::uint64_t {
    if (item.size() % itemsize != 0) {
      throw Error(
          ErrorKind::kCorrupt,
          fmt::format("an item has {} bytes, expected a multiple of {}", item.size(), itemsize));
    }
    return item.size();
  };
  const ArrayGrid lengths = make_lengths(make_grid, 0, measure);
  const ChunkGrid& grid = *lengths.grid;
  if (*element_count(grid.shape()) > kMostRaggedElements) {
    throw Error(ErrorKind::kTooLarge,
                fmt::format("{} elements of variable length, expected at most {}",
                            *element_count(grid.shape()), kMostRaggedElements));
  }
  const std::uint64_t bands = grid.chunk_count() == 0 ? 0
                              : grid.shape().empty()  ? 1
                                                      : grid.grid_shape()[0];
  std::vector<std::int64_t> offsets = {0};
  std::vector<std::uint64_t> counts;  // values of each band
  std::uint64_t longest = 0;
  StrictReader reader(*context.verifier);
  for (std::uint64_t number = 0; number < bands; ++number) {
    const Band band = band_of(grid, number);
    std::vector<std::uint64_t> sizes(*element_count(band.shape));
    reader.decode([&](DecodeContext& decoding) {
      decode_band(grid, band, std::as_writable_bytes(std::span(sizes)), decoding);
    });
    const std::int64_t before = offsets.back();
    for (const std::uint64_t size : sizes) {
      longest = std::max(longest, size);
      offsets.push_back(offsets.back() + static_cast<std::int64_t>(size / itemsize));
    }
    counts.push_back(static_cast<std::uint64_t>(offsets.back() - before));
  }
  const ArrayGrid cells =
      make_grid(cell_type(kLengthNbytes + longest),
                make_element(
                    static_cast<std::uint32_t>(kLengthNbytes + longest),
                    [measure](Stored item, Cell cell) {
                      std::fill(cell.begin(), cell.end(), std::byte{0});
                      const std::uint64_t room = cell.size() - kLengthNbytes;
                      // What hangs over the array's end was not measured.
                      const std::uint64_t nbytes = std::min<std::uint64_t>(measure(item), room);
                      store(nbytes, cell);
                      std::memcpy(cell.data() + kLengthNbytes, item.data(), nbytes);
                    },
                    std::vector<std::byte>(kLengthNbytes + longest)));
  std::vector<StoredArray> arrays(2);
  arrays[0].name = name;
  for (std::uint64_t number = 0; number < bands; ++number) {
    const Band band = band_of(*cells.grid, number);
    const auto elements = element_count(band.shape);
    const auto nbytes =
        elements ? checked_mul(*elements, cells.grid->dtype().itemsize) : std::nullopt;
    if (!nbytes || *nbytes > kMostDecodedNbytes) {
      throw Error(ErrorKind::kTooLarge,
                  fmt::format("{} items of up to {} bytes are decoded together, expected at most "
                              "{} bytes",
                              *elements, longest, kMostDecodedNbytes));
    }
    if (counts[number] > 0) {
      arrays[0].parts.emplace_back(
          std::make_shared<BandValues>(dtype, counts[number], cells.grid, band));
    }
  }
  if (arrays[0].parts.empty()) {
    arrays[0].parts.emplace_back(memory_array(dtype, {0}, {}, name));
  }
  arrays[1].name = name + "_offsets";
  const auto bytes = std::as_bytes(std::span(offsets));
  arrays[1].parts.emplace_back(memory_array(DType::simple("<i8"), {offsets.size()},
                                            {bytes.begin(), bytes.end()}, arrays[1].name));
  for (StoredArray& array : arrays) {
    array.sources = {cells.source};
  }
  return arrays;
}

}  // namespace npyfs
