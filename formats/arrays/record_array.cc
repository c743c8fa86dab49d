// SPDX-License-Identifier: Apache-2.0

#include "formats/arrays/record_array.h"

#include <algorithm>
#include <cstring>
#include <optional>

namespace npyfs {

namespace {

// Items that must be decoded and are small are decoded together: a block of the cache then pays for
// its bookkeeping. No block is larger than this unless it is one item.
constexpr std::uint64_t kGroupNbytes = std::uint64_t{64} << 10;
// Nor has it more items: to decode one, its whole record may have to be read and verified, which
// the item's size says nothing of. 64 labels of 8 bytes still outweigh the bookkeeping; of records
// of 100 KB they take 6 MB to read, where a full block of them took 800.
constexpr std::uint64_t kGroupRecords = 64;

// The bytes an item has in the array: [begin, begin + item_nbytes) is the item, the rest up to
// `end` is padding.
struct Slot {
  std::uint64_t begin;
  std::uint64_t item_nbytes;
  std::uint64_t end;
};

// Neighbouring records, decoded together.
struct Group {
  std::uint64_t first = 0;
  std::uint64_t last = 0;  // excluded
};

// The array's geometry is the subclass's; a chunk is a group, with the number of its first record.
class RecordArray : public Array, public ChunkSource {
 public:
  void plan(ByteRange range, Plan& plan) const override {
    if (range.empty()) {
      return;
    }
    std::uint64_t at = range.begin;
    Group group;
    for (std::uint64_t record = find(at); at < range.end && !plan.full();) {
      const Slot slot = slot_of(record);
      if (const Damage* damage = items_.damaged->find(record)) {
        const std::uint64_t to = std::min(range.end, slot.end);
        plan.add_damaged(damage->error, to - at);
        at = to;
        ++record;
        continue;
      }
      const std::uint64_t item_end = slot.begin + slot.item_nbytes;
      if (at < item_end) {
        const bool decoded = items_.column->decoded(record);
        const std::uint64_t run = slot.end == item_end && !decoded ? run_of(record, slot) : 1;
        const std::uint64_t to = std::min(range.end, slot.begin + run * slot.item_nbytes);
        if (decoded) {
          group = record < group.last ? group : group_of(record);
          plan.add_chunk(*this, group.first, at - slot_of(group.first).begin, to - at);
        } else {
          items_.column->plan(record, {at - slot.begin, to - slot.begin}, plan);
          if (plan.full()) {
            return;  // perhaps before `to`
          }
        }
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
    // What pads the last item is not decoded: plan() fills it.
    const auto [first, last] = group_of(chunk);
    const Slot end = slot_of(last - 1);
    return end.begin + end.item_nbytes - slot_of(first).begin;
  }

  void decode(std::uint64_t chunk, std::span<std::byte> out,
              DecodeContext& context) const override {
    const auto [first, last] = group_of(chunk);
    const std::uint64_t base = slot_of(first).begin;
    for (std::uint64_t record = first; record < last; ++record) {
      const Slot slot = slot_of(record);
      if (slot.item_nbytes == 0 || items_.damaged->find(record) != nullptr ||
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
        context.mark_damaged({slot.begin - base, slot.begin - base + slot.item_nbytes},
                             std::current_exception());
      }
    }
  }

 protected:
  RecordArray(RecordItems items, Shape shape)
      : Array(items.dtype, std::move(shape)), items_(std::move(items)) {}

  // To be called by the subclass's constructor, once slot_of() works.
  void find_storage() {
    const std::uint64_t count = items_.column->size();
    // Whether anything is decoded: the first items tell for all formats but mixed Kaldi tables, and
    // there only what `info` prints depends on it.
    for (std::uint64_t record = 0; record < std::min<std::uint64_t>(count, 64) && !decoded_;
         ++record) {
      decoded_ = items_.damaged->find(record) == nullptr && slot_of(record).item_nbytes > 0 &&
                 items_.column->decoded(record);
    }
  }

  // The record whose slot holds this byte of the array.
  virtual std::uint64_t find(std::uint64_t offset) const = 0;
  virtual Slot slot_of(std::uint64_t record) const = 0;
  // The same for every record of the group.
  virtual Group group_of(std::uint64_t record) const = 0;

  // Where all slots have one size.
  Group equal_group(std::uint64_t record, std::uint64_t slot_nbytes) const {
    const std::uint64_t records =
        std::clamp<std::uint64_t>(kGroupNbytes / slot_nbytes, 1, kGroupRecords);
    const std::uint64_t first = record / records * records;
    return {first, std::min(first + records, items_.column->size())};
  }

  const RecordItems& items() const { return items_; }
  void set_pad_value(std::vector<std::byte> value) { pad_value_ = std::move(value); }

 private:
  // How many items from this one on can be planned as one. A run may not reach over records that
  // were found damaged after the index was made.
  std::uint64_t run_of(std::uint64_t record, const Slot& slot) const {
    const std::uint64_t run = slot.item_nbytes > 0 ? items_.column->run(record) : 1;
    return run > 1 ? std::min(run, items_.damaged->run(record, items_.column->size())) : 1;
  }

  RecordItems items_;
  bool decoded_ = false;
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
    find_storage();
  }

 protected:
  std::uint64_t find(std::uint64_t offset) const override { return offset / item_nbytes_; }
  Slot slot_of(std::uint64_t record) const override {
    const std::uint64_t begin = record * item_nbytes_;
    return {begin, item_nbytes_, begin + item_nbytes_};
  }
  Group group_of(std::uint64_t record) const override { return equal_group(record, item_nbytes_); }

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
    find_storage();
  }

 protected:
  std::uint64_t find(std::uint64_t offset) const override {
    const auto row = static_cast<std::int64_t>(offset / row_nbytes_);
    const auto next = std::upper_bound(offsets_->begin(), offsets_->end(), row);
    return static_cast<std::uint64_t>(next - offsets_->begin()) - 1;
  }
  Slot slot_of(std::uint64_t record) const override {
    const std::uint64_t begin = begin_of(record);
    const std::uint64_t end = begin_of(record + 1);
    return {begin, end - begin, end};
  }
  // Every kGroupNbytes of the array, and every kGroupRecords records, a group ends; an item that
  // reaches over the one is a group of its own.
  Group group_of(std::uint64_t record) const override {
    const std::uint64_t at = begin_of(record);
    const std::uint64_t begin = at - at % kGroupNbytes;
    const std::uint64_t end = begin + kGroupNbytes;
    if (begin_of(record + 1) > end) {
      return {record, record + 1};
    }
    std::uint64_t first = record - record % kGroupRecords;
    std::uint64_t last = std::min(first + kGroupRecords, items().column->size());
    while (begin_of(first) < begin) {
      ++first;
    }
    while (begin_of(last) > end) {
      --last;
    }
    return {first, last};
  }

 private:
  std::uint64_t begin_of(std::uint64_t record) const {
    return static_cast<std::uint64_t>((*offsets_)[record]) * row_nbytes_;
  }

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
    find_storage();
  }

 protected:
  std::uint64_t find(std::uint64_t offset) const override { return offset / slot_nbytes_; }
  Slot slot_of(std::uint64_t record) const override {
    const std::uint64_t begin = record * slot_nbytes_;
    return {begin, static_cast<std::uint64_t>((*lengths_)[record]) * row_nbytes_,
            begin + slot_nbytes_};
  }
  Group group_of(std::uint64_t record) const override { return equal_group(record, slot_nbytes_); }

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
