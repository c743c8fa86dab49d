// SPDX-License-Identifier: Apache-2.0

#include "formats/arrays/record_array.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace npyfs {

namespace {

Shape with_front(std::uint64_t first, const Shape& rest, std::size_t skip) {
  Shape shape{first};
  shape.insert(shape.end(), rest.begin() + static_cast<std::ptrdiff_t>(std::min(skip, rest.size())),
               rest.end());
  return shape;
}

// The bytes a record has in the array: [begin, begin + item_nbytes) is its item, the rest up to
// `end` is padding.
struct Slot {
  std::uint64_t begin;
  std::uint64_t item_nbytes;
  std::uint64_t end;
};

// The geometry is the subclass's.
class RecordArray : public Array {
 public:
  std::string storage() const override { return items_->storage(); }

  void plan(ByteRange range, Plan& plan) const override {
    if (range.empty()) {
      return;
    }
    std::uint64_t row = find(range.begin);
    while (range.begin < range.end && !plan.full()) {
      // Rows that are records which follow each other.
      const auto [place, count] = map_.stretch(row);
      for (std::uint64_t done = 0; done < count && range.begin < range.end && !plan.full();) {
        done += plan_run(row + done, place.record + done, count - done, range, plan);
      }
      row += count;
    }
  }

 protected:
  RecordArray(const ArrayRecipe& recipe, DType dtype, Shape shape)
      : Array(std::move(dtype), std::move(shape)), items_(recipe.items), map_(recipe.map) {}

  const Items& items() const { return *items_; }
  const RecordMap& map() const { return map_; }

  // The row (of the map) whose slot holds this byte of the array.
  virtual std::uint64_t find(std::uint64_t offset) const = 0;
  virtual Slot slot_of(std::uint64_t row, std::uint64_t record) const = 0;
  // Where the slots of rows that follow each other are their items, back to back: the end of the
  // slot of `row`; else nothing.
  virtual std::optional<std::uint64_t> dense_end(std::uint64_t row) const = 0;
  virtual std::span<const std::byte> pad_value() const { return {}; }

 private:
  // Plans what `range` has of `row`, or of up to `most` rows from it on where they can be planned
  // as one, and moves its begin behind it. Returns how many rows these are.
  std::uint64_t plan_run(std::uint64_t row, std::uint64_t record, std::uint64_t most,
                         ByteRange& range, Plan& plan) const {
    const Slot slot = slot_of(row, record);
    std::uint64_t run = 1;
    std::uint64_t end = slot.begin + slot.item_nbytes;
    if (end < range.end && most > 1 && dense_end(row)) {
      run = items_->run(record, most);
      end = run > 1 ? *dense_end(row + run - 1) : end;
    }
    if (range.begin < end) {
      const std::uint64_t to = std::min(range.end, end);
      items_->plan(record, {range.begin - slot.begin, to - slot.begin}, plan);
      range.begin = to;
      if (plan.full()) {
        return run;  // perhaps less is planned: whoever asked looks at what there is
      }
    }
    if (run == 1 && range.begin < std::min(range.end, slot.end)) {
      const std::uint64_t to = std::min(range.end, slot.end);
      plan.add_fill(pad_value(), range.begin - slot.begin, to - range.begin);
      range.begin = to;
    }
    return run;
  }

  ItemsPtr items_;
  RecordMap map_;
};

class StackedArray : public RecordArray {
 public:
  explicit StackedArray(const ArrayRecipe& recipe)
      : RecordArray(recipe, dtype_of(recipe),
                    with_front(recipe.map.size(), recipe.items->shape(), 0)),
        item_nbytes_(row_elements(shape()) * dtype().itemsize),
        is_whole_(!recipe.code_points) {}

  std::uint64_t shard_run(std::uint64_t row) const override {
    const auto [place, count] = map().stretch(row);
    return std::min(count, items().column().shard_run(place.record));
  }

 protected:
  std::uint64_t find(std::uint64_t offset) const override { return offset / item_nbytes_; }
  Slot slot_of(std::uint64_t row, std::uint64_t /*record*/) const override {
    const std::uint64_t begin = row * item_nbytes_;
    return {begin, item_nbytes_, begin + item_nbytes_};
  }
  std::optional<std::uint64_t> dense_end(std::uint64_t row) const override {
    return is_whole_ ? std::optional((row + 1) * item_nbytes_) : std::nullopt;
  }

 private:
  static DType dtype_of(const ArrayRecipe& recipe) {
    return recipe.code_points ? DType::simple(fmt::format("<U{}", *recipe.code_points))
                              : recipe.items->dtype();
  }

  std::uint64_t item_nbytes_;
  bool is_whole_;  // else the end of each item is not shown
};

class ConcatenatedArray : public RecordArray {
 public:
  explicit ConcatenatedArray(const ArrayRecipe& recipe)
      : RecordArray(recipe, recipe.items->dtype(),
                    with_front(recipe.starts->rows(), recipe.items->shape(), 1)),
        starts_(recipe.starts),
        row_nbytes_(recipe.items->row_nbytes()) {}

 protected:
  std::uint64_t find(std::uint64_t offset) const override {
    return starts_->find(offset / row_nbytes_);
  }
  Slot slot_of(std::uint64_t row, std::uint64_t record) const override {
    const std::uint64_t begin = (*starts_)[row] * row_nbytes_;
    const std::uint64_t nbytes = items().nbytes(record);
    return {begin, nbytes, begin + nbytes};
  }
  std::optional<std::uint64_t> dense_end(std::uint64_t row) const override {
    return (*starts_)[row + 1] * row_nbytes_;
  }

 private:
  StartsPtr starts_;
  std::uint64_t row_nbytes_;
};

class PaddedArray : public RecordArray {
 public:
  explicit PaddedArray(const ArrayRecipe& recipe)
      : RecordArray(recipe, recipe.items->dtype(), shape_of(recipe)),
        pad_value_(recipe.pad_value),
        slot_nbytes_(recipe.most_rows * recipe.items->row_nbytes()) {}

 protected:
  std::uint64_t find(std::uint64_t offset) const override { return offset / slot_nbytes_; }
  Slot slot_of(std::uint64_t row, std::uint64_t record) const override {
    const std::uint64_t begin = row * slot_nbytes_;
    // Of a damaged item nobody knows where the padding would begin.
    const bool is_known = items().damage(record) == nullptr;
    return {begin, is_known ? items().nbytes(record) : slot_nbytes_, begin + slot_nbytes_};
  }
  std::optional<std::uint64_t> dense_end(std::uint64_t /*row*/) const override {
    return std::nullopt;
  }
  std::span<const std::byte> pad_value() const override { return pad_value_; }

 private:
  static Shape shape_of(const ArrayRecipe& recipe) {
    return with_front(recipe.map.size(), with_front(recipe.most_rows, recipe.items->shape(), 1), 0);
  }

  std::vector<std::byte> pad_value_;
  std::uint64_t slot_nbytes_;
};

// In Fortran order the rows are the innermost axis: blocks of all rows, each of one element.
class FortranRows : public Array {
 public:
  FortranRows(ArrayPtr base, const RecordMap& map)
      : Array(base->dtype(), with_front(map.size(), base->shape(), 1)),
        base_(std::move(base)),
        map_(map) {}

  bool fortran_order() const override { return true; }
  std::string storage() const override { return base_->storage(); }

  void plan(ByteRange range, Plan& plan) const override {
    const std::uint64_t itemsize = dtype().itemsize;
    const std::uint64_t block_nbytes = map_.size() * itemsize;
    while (!range.empty() && !plan.full()) {
      const std::uint64_t block = range.begin / block_nbytes;
      const std::uint64_t row = range.begin % block_nbytes / itemsize;
      const std::uint64_t within = range.begin % itemsize;
      const auto [place, count] = map_.stretch(row);
      const std::uint64_t nbytes = std::min(range.nbytes(), count * itemsize - within);
      const std::uint64_t from = (block * base_->shape()[0] + place.record) * itemsize + within;
      base_->plan({from, from + nbytes}, plan);
      range.begin += nbytes;
    }
  }

 private:
  ArrayPtr base_;
  RecordMap map_;
};

// Numbers that lie in memory.
class StoredNumbers : public Array {
 public:
  StoredNumbers(std::span<const std::int64_t> numbers, OffsetsPtr holder)
      : Array(DType::simple("<i8"), {numbers.size()}),
        numbers_(numbers),
        holder_(std::move(holder)) {}

  std::string storage() const override { return "computed"; }
  void plan(ByteRange range, Plan& plan) const override {
    plan.add_memory(std::as_bytes(numbers_).data() + range.begin, range.nbytes());
  }

 private:
  std::span<const std::int64_t> numbers_;
  OffsetsPtr holder_;
};

class ComputedNumbers : public Array, public ChunkSource {
 public:
  ComputedNumbers(std::uint64_t count, std::function<std::int64_t(std::uint64_t)> number_at)
      : Array(DType::simple("<i8"), {count}), number_at_(std::move(number_at)) {}

  std::string storage() const override { return "computed"; }

  void plan(ByteRange range, Plan& plan) const override {
    while (!range.empty() && !plan.full()) {
      const std::uint64_t chunk = range.begin / kChunkNbytes;
      const std::uint64_t to = std::min(range.end, (chunk + 1) * kChunkNbytes);
      plan.add_chunk(*this, chunk, range.begin - chunk * kChunkNbytes, to - range.begin);
      range.begin = to;
    }
  }

  std::uint64_t chunk_nbytes(std::uint64_t chunk) const override {
    return std::min(nbytes() - chunk * kChunkNbytes, kChunkNbytes);
  }

  void decode(std::uint64_t chunk, std::span<std::byte> out,
              DecodeContext& /*context*/) const override {
    const std::uint64_t first = chunk * kChunkNbytes / sizeof(std::int64_t);
    for (std::uint64_t i = 0; i < out.size() / sizeof(std::int64_t); ++i) {
      const std::int64_t number = number_at_(first + i);
      std::memcpy(out.data() + i * sizeof number, &number, sizeof number);
    }
  }

 private:
  static constexpr std::uint64_t kChunkNbytes = std::uint64_t{64} << 10;

  std::function<std::int64_t(std::uint64_t)> number_at_;
};

ArrayPtr offsets_array(const StartsPtr& starts) {
  if (const auto stored = starts->stored(); !stored.empty()) {
    return std::make_shared<StoredNumbers>(stored, starts->holder());
  }
  return computed_numbers(starts->size() + 1, [starts](std::uint64_t record) {
    return static_cast<std::int64_t>((*starts)[record]);
  });
}

}  // namespace

Starts::Starts(const Items& items, const RecordMap& map)
    : count_(map.size()), offsets_(items.offsets()) {
  if (offsets_ == nullptr) {
    equal_rows_ = items.size() > 0 ? items.rows(0) : 0;
    return;
  }
  if (const auto range = map.as_range()) {
    first_ = range->begin;
    return;
  }
  auto own = std::make_shared<Offsets>();
  own->reserve(count_ + 1);
  std::int64_t begin = 0;
  own->push_back(begin);
  for (std::uint64_t row = 0; row < count_;) {
    const auto [place, count] = map.stretch(row);
    for (std::uint64_t i = 0; i < count; ++i) {
      begin += static_cast<std::int64_t>(items.rows(place.record + i));
      own->push_back(begin);
    }
    row += count;
  }
  offsets_ = std::move(own);
}

std::uint64_t Starts::find(std::uint64_t row) const {
  if (offsets_ == nullptr) {
    return row / equal_rows_;
  }
  // Records without rows come before the one that begins at the same row.
  const std::int64_t* behind =
      std::upper_bound(begin(), begin() + count_ + 1, begin()[0] + static_cast<std::int64_t>(row));
  return static_cast<std::uint64_t>(behind - begin()) - 1;
}

std::span<const std::int64_t> Starts::stored() const {
  return offsets_ != nullptr && begin()[0] == 0 ? std::span(begin(), count_ + 1)
                                                : std::span<const std::int64_t>();
}

ArrayRecipe stacked(ItemsPtr items) {
  ArrayRecipe recipe;
  recipe.map = RecordMap::all(items->size());
  recipe.items = std::move(items);
  return recipe;
}

std::uint64_t most_rows(const Items& items, const RecordMap& map) {
  if (items.offsets() == nullptr) {
    return map.size() > 0 ? items.rows(0) : 0;
  }
  std::uint64_t most = 0;
  for (std::uint64_t row = 0; row < map.size();) {
    const auto [place, count] = map.stretch(row);
    for (std::uint64_t i = 0; i < count; ++i) {
      most = std::max(most, items.rows(place.record + i));
    }
    row += count;
  }
  return most;
}

ArrayPtr make_record_array(const ArrayRecipe& recipe) {
  switch (recipe.form) {
    case ArrayRecipe::Form::kStack:
      return std::make_shared<StackedArray>(recipe);
    case ArrayRecipe::Form::kConcat:
      return std::make_shared<ConcatenatedArray>(recipe);
    case ArrayRecipe::Form::kOffsets:
      return offsets_array(recipe.starts);
    case ArrayRecipe::Form::kPad:
      return std::make_shared<PaddedArray>(recipe);
    case ArrayRecipe::Form::kLengths:
      break;
  }
  return computed_numbers(recipe.map.size(),
                          [items = recipe.items, map = recipe.map](std::uint64_t row) {
                            return static_cast<std::int64_t>(items->rows(map[row].record));
                          });
}

ArrayPtr select_fortran_rows(ArrayPtr array, const RecordMap& map) {
  return std::make_shared<FortranRows>(std::move(array), map);
}

ArrayPtr computed_numbers(std::uint64_t count,
                          std::function<std::int64_t(std::uint64_t)> number_at) {
  return std::make_shared<ComputedNumbers>(count, std::move(number_at));
}

}  // namespace npyfs
