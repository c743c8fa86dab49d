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

DType dtype_of(const ArrayRecipe& recipe) {
  return recipe.code_points ? DType::simple(fmt::format("<U{}", *recipe.code_points))
                            : recipe.items->dtype();
}

Shape shape_of(const ArrayRecipe& recipe) {
  const Shape& item = recipe.items->shape();
  switch (recipe.form) {
    case ArrayRecipe::Form::kConcat:
      return with_front(recipe.starts->rows(), item, 1);
    case ArrayRecipe::Form::kPad:
      return with_front(recipe.map.size(), with_front(recipe.most_rows, item, 1), 0);
    default:
      return with_front(recipe.map.size(), item, 0);
  }
}

// Rows that are items: stacked, one after another, or each padded to one length.
class RecordArray : public Array {
 public:
  explicit RecordArray(const ArrayRecipe& recipe)
      : Array(dtype_of(recipe), shape_of(recipe)),
        form_(recipe.form),
        items_(recipe.items),
        map_(recipe.map),
        pad_value_(recipe.pad_value),
        // A text that is shown narrower than its dtype leaves bytes between two slots.
        is_dense_(form_ == Form::kConcat || (form_ == Form::kStack && !recipe.code_points)),
        slots_(recipe) {}

  std::string storage() const override { return items_->storage(); }

  std::uint64_t shard_run(std::uint64_t row) const override {
    if (form_ != Form::kStack) {
      return Array::shard_run(row);
    }
    const auto [place, count] = map_.stretch(row);
    return std::min(count, items_->column().shard_run(place.record));
  }

  void plan(ByteRange range, Plan& plan) const override {
    if (range.empty()) {
      return;
    }
    std::uint64_t row = slots_.find(range.begin);
    while (range.begin < range.end && !plan.full()) {
      // Rows that are records which follow each other.
      const auto [place, count] = map_.stretch(row);
      for (std::uint64_t done = 0; done < count && range.begin < range.end && !plan.full();) {
        done += plan_run(row + done, place.record + done, count - done, range, plan);
      }
      row += count;
    }
  }

 private:
  using Form = ArrayRecipe::Form;

  // Plans the bytes of `range` in `row`, or in up to `most` rows from it on if they can be planned
  // as one. Moves range.begin behind them. Returns the number of rows.
  std::uint64_t plan_run(std::uint64_t row, std::uint64_t record, std::uint64_t most,
                         ByteRange& range, Plan& plan) const {
    const std::uint64_t begin = slots_.begin(row);
    if (form_ == Form::kPad) {
      plan_padded(record, begin, range, plan);
      return 1;
    }
    const std::uint64_t end = slots_.begin(row + 1);
    const bool goes_on = is_dense_ && most > 1 && end < range.end;
    const ByteRange wanted{range.begin - begin,
                           (goes_on ? range.end : std::min(range.end, end)) - begin};
    const std::uint64_t run = items_->plan(record, goes_on ? most : 1, wanted, plan);
    range.begin = std::min(range.end, run > 1 ? slots_.begin(row + run) : end);
    return run;  // if the plan is full, less is planned: the caller looks at plan.full()
  }

  void plan_padded(std::uint64_t record, std::uint64_t begin, ByteRange& range, Plan& plan) const {
    // A damaged item has no known length, so all of its slot is damaged.
    const bool is_known = items_->damage(record) == nullptr;
    const std::uint64_t padding =
        begin + (is_known ? items_->nbytes(record) : slots_.unit_nbytes());
    if (range.begin < padding) {
      const std::uint64_t to = std::min(range.end, padding);
      items_->plan(record, 1, {range.begin - begin, to - begin}, plan);
      range.begin = to;
    }
    const std::uint64_t to = std::min(range.end, begin + slots_.unit_nbytes());
    if (range.begin < to && !plan.full()) {
      plan.add_fill(pad_value_, range.begin - begin, to - range.begin);
      range.begin = to;
    }
  }

  Form form_;
  ItemsPtr items_;
  RecordMap map_;
  std::vector<std::byte> pad_value_;
  bool is_dense_;  // slots are their items, back to back
  Slots slots_;
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

Slots::Slots(const ArrayRecipe& recipe)
    : starts_(recipe.form == ArrayRecipe::Form::kConcat ? recipe.starts : nullptr),
      unit_nbytes_(starts_ != nullptr
                       ? recipe.items->row_nbytes()
                       : row_elements(shape_of(recipe)) * dtype_of(recipe).itemsize) {}

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
    case ArrayRecipe::Form::kOffsets:
      return offsets_array(recipe.starts);
    case ArrayRecipe::Form::kLengths:
      return computed_numbers(recipe.map.size(),
                              [items = recipe.items, map = recipe.map](std::uint64_t row) {
                                return static_cast<std::int64_t>(items->rows(map[row].record));
                              });
    default:
      return std::make_shared<RecordArray>(recipe);
  }
}

ArrayPtr select_fortran_rows(ArrayPtr array, const RecordMap& map) {
  return std::make_shared<FortranRows>(std::move(array), map);
}

ArrayPtr computed_numbers(std::uint64_t count,
                          std::function<std::int64_t(std::uint64_t)> number_at) {
  return std::make_shared<ComputedNumbers>(count, std::move(number_at));
}

}  // namespace npyfs
