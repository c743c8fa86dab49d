// SPDX-License-Identifier: Apache-2.0

#include "formats/arrays/ragged.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <utility>

#include "formats/arrays/stored_array.h"
#include "formats/extents.h"

namespace npyfs {

namespace {

// Offsets are held in memory whole: as much as one decoded chunk may take.
constexpr std::uint64_t kMostNbytes = kMostDecodedNbytes;
constexpr std::uint64_t kReadNbytes = std::uint64_t{1} << 20;

void require_guarded(const Guard& guard) {
  for (std::uint64_t i = 0; guard.table != nullptr && i < guard.count; ++i) {
    const auto checksum = guard.table->checksum(guard.first + i);
    if (checksum && !matches(*checksum)) {
      throw checksum_error(record_name(*guard.table, guard.first + i), checksum->payload);
    }
  }
}

class StrictContext : public DecodeContext {
  void require_intact(const RecordTable& table, std::uint64_t record) override {
    require_guarded({&table, record, 1});
  }
  void mark_damaged(ByteRange /*range*/, std::exception_ptr why) override {
    std::rethrow_exception(why);
  }
};

// What planned pieces stand for, without a cache: each chunk is decoded once while pieces of it
// follow each other.
class PlainReader {
 public:
  // Fills `out` with the bytes of the array from `begin` on.
  void read(const Array& array, std::uint64_t begin, std::span<std::byte> out) {
    while (!out.empty()) {
      plan_.clear();
      array.plan({begin, begin + out.size()}, plan_);
      for (const Piece& piece : plan_.pieces()) {
        read(piece, out.first(piece.nbytes));
        out = out.subspan(piece.nbytes);
        begin += piece.nbytes;
      }
    }
  }

 private:
  void read(const Piece& piece, std::span<std::byte> out) {
    if (!(piece.guard.table == verified_.table && piece.guard.first == verified_.first &&
          piece.guard.count == verified_.count)) {
      require_guarded(piece.guard);
      verified_ = piece.guard;
    }
    switch (piece.kind) {
      case Piece::Kind::kExtent:
        piece.source->read_at(piece.offset, out);
        break;
      case Piece::Kind::kChunk:
        std::memcpy(out.data(), decoded(*piece.chunks, piece.chunk).data() + piece.offset,
                    out.size());
        break;
      case Piece::Kind::kMemory:
        std::memcpy(out.data(), piece.memory, out.size());
        break;
      case Piece::Kind::kFill:
        for (std::size_t i = 0; i < out.size(); ++i) {
          out[i] = piece.memory[(piece.offset + i) % piece.pattern_nbytes];
        }
        break;
      case Piece::Kind::kDamaged:
        throw Error(*piece.error);
    }
  }

  const std::vector<std::byte>& decoded(const ChunkSource& chunks, std::uint64_t chunk) {
    if (chunks_ != &chunks || chunk_ != chunk) {
      chunks_ = nullptr;
      bytes_.resize(chunks.chunk_nbytes(chunk));
      chunks.decode(chunk, bytes_, context_);
      chunks_ = &chunks;
      chunk_ = chunk;
    }
    return bytes_;
  }

  Plan plan_;
  StrictContext context_;
  Guard verified_;
  const ChunkSource* chunks_ = nullptr;  // what bytes_ are a chunk of
  std::uint64_t chunk_ = 0;
  std::vector<std::byte> bytes_;
};

[[noreturn]] void refuse(const RaggedPair& pair, const std::string& what) {
  throw Error(ErrorKind::kUnsupported,
              fmt::format("{}{} beside {}: {}, so its records cannot be told apart",
                          printable(pair.name), kOffsetsEnd, printable(pair.name), what));
}

const DType& dtype_of(const StoredArray& stored) {
  const auto* npy = std::get_if<StoredNpy>(&stored.parts.front());
  return npy != nullptr ? npy->header.dtype
                        : std::get<std::shared_ptr<const ChunkGrid>>(stored.parts.front())->dtype();
}

const Shape& shape_of(const StoredArray& stored) {
  const auto* npy = std::get_if<StoredNpy>(&stored.parts.front());
  return npy != nullptr ? npy->header.shape
                        : std::get<std::shared_ptr<const ChunkGrid>>(stored.parts.front())->shape();
}

// Each record's rows as an item.
class RaggedColumn : public Column {
 public:
  RaggedColumn(ArrayPtr values, OffsetsPtr offsets)
      : values_(std::move(values)), offsets_(std::move(offsets)) {
    Shape row = values_->shape();
    row[0] = 1;
    row_nbytes_ = *element_count(row) * values_->dtype().itemsize;
  }

  std::uint64_t size() const override { return offsets_->size() - 1; }
  void inspect(std::uint64_t record, Item& item) const override {
    item.present = true;
    item.damage = nullptr;
    item.dtype = values_->dtype();
    item.shape = values_->shape();
    item.shape[0] = begin(record + 1) - begin(record);
  }
  bool time_series() const override { return true; }
  std::uint64_t run(std::uint64_t record) const override { return size() - record; }
  // A record lies in the shard in which it begins.
  std::uint64_t shard_run(std::uint64_t record) const override {
    const std::uint64_t row = begin(record);
    if (row >= values_->shape()[0]) {
      return size() - record;
    }
    const auto end = static_cast<std::int64_t>(row + values_->shard_run(row));
    const auto first = offsets_->begin() + static_cast<std::ptrdiff_t>(record);
    const auto behind = std::lower_bound(first + 1, offsets_->end() - 1, end);
    return static_cast<std::uint64_t>(behind - first);
  }
  void plan(std::uint64_t record, ByteRange range, Plan& plan) const override {
    const std::uint64_t at = begin(record) * row_nbytes_;
    values_->plan({at + range.begin, at + range.end}, plan);
  }

 private:
  std::uint64_t begin(std::uint64_t record) const {
    return static_cast<std::uint64_t>((*offsets_)[record]);
  }

  ArrayPtr values_;
  OffsetsPtr offsets_;
  std::uint64_t row_nbytes_ = 0;
};

}  // namespace

const StoredArray* find_offsets(const Group& group, const std::string& name) {
  const auto named = [&](std::string_view wanted) {
    return std::find_if(group.arrays.begin(), group.arrays.end(),
                        [&](const StoredArray& array) { return array.name == wanted; });
  };
  const auto values = named(name);
  const auto offsets = named(name + std::string(kOffsetsEnd));
  if (values == group.arrays.end() || offsets == group.arrays.end()) {
    return nullptr;
  }
  const char kind = dtype_of(*offsets).kind;
  const bool fit =
      !shape_of(*values).empty() && shape_of(*offsets).size() == 1 && (kind == 'i' || kind == 'u');
  return fit ? &*offsets : nullptr;
}

std::shared_ptr<const RaggedPair> make_ragged_pair(const StoredArray& values,
                                                   const StoredArray& offsets,
                                                   const std::string& name) {
  auto pair = std::make_shared<RaggedPair>();
  pair->values = make_stored_array(values, name, true);
  pair->offsets = make_stored_array(offsets, name + std::string(kOffsetsEnd), true);
  pair->name = name;
  return pair;
}

OffsetsPtr read_offsets(const RaggedPair& pair) {
  const std::uint64_t rows = pair.values->shape()[0];
  const std::uint64_t count = pair.offsets->shape()[0];
  if (!(pair.offsets->dtype() == DType::simple("<i8"))) {
    refuse(pair, fmt::format("it is {}, expected <i8", pair.offsets->dtype().text()));
  }
  if (count == 0 || pair.offsets->nbytes() > kMostNbytes) {
    refuse(pair, fmt::format("it has {} numbers, expected 1 to {}", count,
                             kMostNbytes / sizeof(std::int64_t)));
  }
  const SourceWatch watch;
  PlainReader reader;
  auto offsets = std::make_shared<std::vector<std::int64_t>>();
  std::int64_t before = 0;
  // In pieces: what are no offsets is not read, nor kept, to its end.
  while (offsets->size() < count) {
    const std::uint64_t first = offsets->size();
    const std::uint64_t end = std::min(count, first + kReadNbytes / sizeof(std::int64_t));
    offsets->resize(end);
    const std::span<std::int64_t> numbers = std::span(*offsets).subspan(first);
    reader.read(*pair.offsets, first * sizeof(std::int64_t), std::as_writable_bytes(numbers));
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      const std::int64_t number = numbers[i];
      const bool fits = first + i == 0 ? number == 0 : number >= before;
      if (!fits || static_cast<std::uint64_t>(number) > rows) {
        refuse(pair, fmt::format("number {} is {}, expected 0 at first, none below the one before "
                                 "and none above the {} rows",
                                 first + i, number, rows));
      }
      before = number;
    }
  }
  if (static_cast<std::uint64_t>(before) != rows) {
    refuse(pair, fmt::format("its last number is {}, expected the {} rows", before, rows));
  }
  watch.check_unchanged();
  return offsets;
}

ArrayPart offsets_part(const std::vector<std::int64_t>& offsets, const std::string& name) {
  const auto bytes = std::as_bytes(std::span(offsets));
  return make_mapped_grid(
      DType::simple("<i8"), {offsets.size()},
      std::make_shared<MemorySource>(name, std::vector(bytes.begin(), bytes.end())), 0);
}

std::shared_ptr<const Column> make_ragged_column(ArrayPtr values, OffsetsPtr offsets) {
  return std::make_shared<RaggedColumn>(std::move(values), std::move(offsets));
}

ItemsPtr ragged_items(const RaggedPair& pair, const OffsetsPtr& offsets) {
  ItemsOf of;
  of.column = make_ragged_column(pair.values, offsets);
  of.dtype = pair.values->dtype();
  of.shape = pair.values->shape();
  of.offsets = offsets;
  of.storage = pair.values->storage();
  return std::make_shared<const Items>(std::move(of));
}

}  // namespace npyfs
