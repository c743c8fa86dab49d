// SPDX-License-Identifier: Apache-2.0

#include "formats/arrays/record_array.h"

#include <algorithm>
#include <cstring>
#include <optional>

namespace npyfs {

namespace {

// Items that must be decoded and are small are decoded together: a block of the cache then pays for
// its bookkeeping. Larger ones are a block each.
constexpr std::uint64_t kGroupNbytes = std::uint64_t{64} << 10;

// The bytes an item has in the array: [begin, begin + item_nbytes) is the item, the rest up to
// `end` is padding.
struct Slot {
  std::uint64_t begin;
  std::uint64_t item_nbytes;
  std::uint64_t end;
};

// The array's geometry is the subclass's; a chunk is a group of neighbouring records.
class RecordArray : public Array, public ChunkSource {
 public:
  void plan(ByteRange range, Plan& plan) const override {
    if (range.empty()) {
      return;
    }
    std::uint64_t at = range.begin;
    for (std::uint64_t record = find(at); at < range.end;) {
      const Slot slot = slot_of(record);
      if (const Damage* damage = damage_of(record)) {
        const std::uint64_t to = std::min(range.end, slot.end);
        plan.add_damaged(damage->error, to - at);
        at = to;
        ++record;
        continue;
      }
      const std::uint64_t item_end = slot.begin + slot.item_nbytes;
      if (at < item_end) {
        const std::uint64_t run = slot.end == item_end ? run_of(record, slot) : 1;
        const std::uint64_t to = std::min(range.end, slot.begin + run * slot.item_nbytes);
        plan_item(record, slot, {at, to}, plan);
        at = to;
        record += run - 1;
      }
      const std::uint64_t slot_end = slot_of(record).end;
      if (at < std::min(range.end, slot_end)) {
        const std::uint64_t to = std::min(range.end, slot_end);
        plan.add_fill(pad_value_, at - slot.begin, to - at);
        at = to;
      }
      ++record;
    }
  }

  std::string storage() const override { return decoded_ ? "decoded" : "mapped"; }

  std::uint64_t chunk_nbytes(std::uint64_t chunk) const override {
    const auto [first, last] = group(chunk);
    return slot_of(last - 1).end - slot_of(first).begin;
  }

  void decode(std::uint64_t chunk, std::span<std::byte> out,
              DecodeContext& context) const override {
    const auto [first, last] = group(chunk);
    const std::uint64_t base = slot_of(first).begin;
    for (std::uint64_t record = first; record < last; ++record) {
      const Slot slot = slot_of(record);
      if (slot.item_nbytes == 0 || damage_of(record) != nullptr ||
          !items_.column->decoded(record)) {
        continue;
      }
      try {
        items_.column->decode(record, out.subspan(slot.begin - base, slot.item_nbytes), context);
      } catch (const Error& error) {
        // Damage stays this record's; what else can go wrong (the source is gone) is everybody's.
        if (error.kind() != ErrorKind::kCorrupt) {
          throw;
        }
        context.mark_damaged({slot.begin - base, slot.end - base}, std::current_exception());
      }
    }
  }

 protected:
  RecordArray(RecordItems items, Shape shape)
      : Array(items.dtype, std::move(shape)), items_(std::move(items)) {
    for (const auto& [record, damage] : items_.damaged) {
      damaged_set_.add(record);
    }
    damaged_set_.optimize();
    any_damaged_ = !damaged_set_.empty();
  }

  // To be called by the subclass's constructor, once slot_of() works.
  void find_groups() {
    const std::uint64_t count = items_.column->size();
    if (count == 0) {
      return;
    }
    // Whether anything is decoded: the first items tell for all formats but mixed Kaldi tables, and
    // there only what `info` prints depends on it.
    for (std::uint64_t record = 0; record < std::min<std::uint64_t>(count, 64) && !decoded_;
         ++record) {
      decoded_ = damage_of(record) == nullptr && slot_of(record).item_nbytes > 0 &&
                 items_.column->decoded(record);
    }
    const std::uint64_t mean = std::max<std::uint64_t>(1, nbytes() / count);
    group_records_ = std::clamp<std::uint64_t>(kGroupNbytes / mean, 1, count);
  }

  // The record whose slot holds this byte of the array.
  virtual std::uint64_t find(std::uint64_t offset) const = 0;
  virtual Slot slot_of(std::uint64_t record) const = 0;

  const RecordItems& items() const { return items_; }
  void set_pad_value(std::vector<std::byte> value) { pad_value_ = std::move(value); }

 private:
  const Damage* damage_of(std::uint64_t record) const {
    if (!any_damaged_ || !damaged_set_.contains(record)) {
      return nullptr;
    }
    return &items_.damaged.at(record);
  }

  // How many items from this one on can be planned as one. A run may not reach over records that
  // were found damaged after the index was made.
  std::uint64_t run_of(std::uint64_t record, const Slot& slot) const {
    if (any_damaged_ || slot.item_nbytes == 0) {
      return 1;
    }
    return std::max<std::uint64_t>(1, items_.column->run(record));
  }

  void plan_item(std::uint64_t record, const Slot& slot, ByteRange range, Plan& plan) const {
    const ByteRange within{range.begin - slot.begin, range.end - slot.begin};
    if (items_.column->decoded(record)) {
      const std::uint64_t chunk = record / group_records_;
      plan.add_chunk(*this, chunk, range.begin - slot_of(chunk * group_records_).begin,
                     range.nbytes());
    } else {
      items_.column->plan(record, within, plan);
    }
  }

  struct Group {
    std::uint64_t first, last;
  };
  Group group(std::uint64_t chunk) const {
    const std::uint64_t first = chunk * group_records_;
    return {first, std::min(first + group_records_, items_.column->size())};
  }

  RecordItems items_;
  RecordSet damaged_set_;
  bool any_damaged_ = false;
  bool decoded_ = false;
  std::uint64_t group_records_ = 1;
  std::vector<std::byte> pad_value_{std::byte{0}};
};

Shape with_front(std::uint64_t first, const Shape& rest, std::size_t skip) {
  Shape shape{first};
  shape.insert(shape.end(), rest.begin() + static_cast<std::ptrdiff_t>(std::min(skip, rest.size())),
               rest.end());
  return shape;
}

class StackedArray : public RecordArray {
 public:
  explicit StackedArray(const RecordItems& items)
      : RecordArray(items, with_front(items.column->size(), items.item_shape, 0)),
        item_nbytes_(row_elements(shape()) * dtype().itemsize) {
    find_groups();
  }

 protected:
  std::uint64_t find(std::uint64_t offset) const override { return offset / item_nbytes_; }
  Slot slot_of(std::uint64_t record) const override {
    const std::uint64_t begin = record * item_nbytes_;
    return {begin, item_nbytes_, begin + item_nbytes_};
  }

 private:
  std::uint64_t item_nbytes_;
};

class ConcatenatedArray : public RecordArray {
 public:
  ConcatenatedArray(const RecordItems& items, std::shared_ptr<const Offsets> offsets)
      : RecordArray(items,
                    with_front(static_cast<std::uint64_t>(offsets->back()), items.item_shape, 1)),
        offsets_(std::move(offsets)),
        row_nbytes_(row_elements(shape()) * dtype().itemsize) {
    find_groups();
  }

 protected:
  std::uint64_t find(std::uint64_t offset) const override {
    const auto row = static_cast<std::int64_t>(offset / row_nbytes_);
    const auto next = std::upper_bound(offsets_->begin(), offsets_->end(), row);
    return static_cast<std::uint64_t>(next - offsets_->begin()) - 1;
  }
  Slot slot_of(std::uint64_t record) const override {
    const std::uint64_t begin = static_cast<std::uint64_t>((*offsets_)[record]) * row_nbytes_;
    const std::uint64_t end = static_cast<std::uint64_t>((*offsets_)[record + 1]) * row_nbytes_;
    return {begin, end - begin, end};
  }

 private:
  std::shared_ptr<const Offsets> offsets_;
  std::uint64_t row_nbytes_;
};

class PaddedArray : public RecordArray {
 public:
  PaddedArray(const RecordItems& items, std::shared_ptr<const std::vector<std::int64_t>> lengths,
              std::uint64_t most_rows, std::vector<std::byte> pad_value)
      : RecordArray(items, padded_shape(items, most_rows)),
        lengths_(std::move(lengths)),
        slot_nbytes_(row_elements(shape()) * dtype().itemsize),
        row_nbytes_(most_rows == 0 ? 0 : slot_nbytes_ / most_rows) {
    set_pad_value(std::move(pad_value));
    find_groups();
  }

 protected:
  std::uint64_t find(std::uint64_t offset) const override { return offset / slot_nbytes_; }
  Slot slot_of(std::uint64_t record) const override {
    const std::uint64_t begin = record * slot_nbytes_;
    return {begin, static_cast<std::uint64_t>((*lengths_)[record]) * row_nbytes_,
            begin + slot_nbytes_};
  }

 private:
  static Shape padded_shape(const RecordItems& items, std::uint64_t most_rows) {
    return with_front(items.column->size(), with_front(most_rows, items.item_shape, 1), 0);
  }

  std::shared_ptr<const std::vector<std::int64_t>> lengths_;
  std::uint64_t slot_nbytes_;
  std::uint64_t row_nbytes_;
};

}  // namespace

ArrayPtr stack_items(const RecordItems& items) { return std::make_shared<StackedArray>(items); }

ArrayPtr concatenate_items(const RecordItems& items, std::shared_ptr<const Offsets> offsets) {
  return std::make_shared<ConcatenatedArray>(items, std::move(offsets));
}

ArrayPtr pad_items(const RecordItems& items,
                   std::shared_ptr<const std::vector<std::int64_t>> lengths,
                   std::uint64_t most_rows, std::vector<std::byte> pad_value) {
  return std::make_shared<PaddedArray>(items, std::move(lengths), most_rows, std::move(pad_value));
}

}  // namespace npyfs
