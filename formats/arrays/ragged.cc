// SPDX-License-Identifier: Apache-2.0

#include "formats/arrays/ragged.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <utility>

#include "formats/arrays/stored_array.h"
#include "formats/bytes/strict_reader.h"

namespace npyfs {

namespace {

// Offsets are held in memory whole: as much as one decoded chunk may take.
constexpr std::uint64_t kMostNbytes = kMostDecodedNbytes;
constexpr std::uint64_t kReadNbytes = std::uint64_t{1} << 20;

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
                                                   const std::string& name,
                                                   const Verifier& verifier) {
  return std::make_shared<RaggedPair>(RaggedPair{
      make_stored_array(values, name, true),
      make_stored_array(offsets, name + std::string(kOffsetsEnd), true), name, verifier});
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
  StrictReader reader(pair.verifier);
  const PlanRead plan_read = [&](ByteRange range, Plan& plan) { pair.offsets->plan(range, plan); };
  auto offsets = std::make_shared<std::vector<std::int64_t>>();
  std::int64_t before = 0;
  // In pieces: what are no offsets is not read, nor kept, to its end.
  while (offsets->size() < count) {
    const std::uint64_t first = offsets->size();
    const std::uint64_t end = std::min(count, first + kReadNbytes / sizeof(std::int64_t));
    offsets->resize(end);
    const std::span<std::int64_t> numbers = std::span(*offsets).subspan(first);
    reader.read(plan_read, first * sizeof(std::int64_t), std::as_writable_bytes(numbers));
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
