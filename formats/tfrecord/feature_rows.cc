// SPDX-License-Identifier: Apache-2.0

#include "formats/tfrecord/feature_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "formats/bytes/error.h"

namespace npyfs {

namespace {

// Every distinct name becomes a file and a column. Data has hundreds; more is an attack or a name
// made from data, and is refused before it eats the memory.
constexpr std::size_t kMaxFeatures = 65536;
// 256 bytes for each of them, the longest name a file can have.
constexpr std::size_t kMaxNamesNbytes = std::size_t{16} << 20;

constexpr std::uint64_t kDirect = 8;  // in forms_

unsigned width_of(std::uint64_t value) {
  return value < (1U << 8) ? 1 : value < (1U << 16) ? 2 : value < (std::uint64_t{1} << 32) ? 4 : 8;
}

}  // namespace

void PackedColumn::append(std::uint64_t value) {
  if (size_ == 0) {
    first_ = value;
  }
  if (width_ == 0 ? value != first_ : width_of(value) > width_) {
    widen(std::max({width_of(value), width_of(first_), width_}));
  }
  ++size_;
  if (width_ != 0) {
    store(value);
  }
}

void PackedColumn::store(std::uint64_t value) {
  const auto* bytes = reinterpret_cast<const std::byte*>(&value);
  bytes_.append(std::span(bytes, width_));
}

void PackedColumn::widen(unsigned width) {
  PackedColumn wide;
  wide.width_ = width;
  wide.bytes_.reserve(size_ * width);
  for (std::uint64_t i = 0; i < size_; ++i) {
    wide.store((*this)[i]);
  }
  width_ = width;
  bytes_ = std::move(wide.bytes_);
}

std::uint64_t PackedColumn::operator[](std::uint64_t index) const {
  if (width_ == 0) {
    return first_;
  }
  std::uint64_t value = 0;
  std::memcpy(&value, bytes_.data() + index * width_, width_);
  return value;
}

std::uint64_t PackedColumn::lower_bound(std::uint64_t value) const {
  std::uint64_t begin = 0;
  std::uint64_t end = size_;
  while (begin < end) {
    const std::uint64_t middle = begin + (end - begin) / 2;
    if ((*this)[middle] < value) {
      begin = middle + 1;
    } else {
      end = middle;
    }
  }
  return begin;
}

void FeatureRows::append(std::uint64_t record, const FeatureValue& value,
                         std::uint64_t payload_offset) {
  note(record, value);
  if (records_.size() == 0 && record != size()) {
    for (std::uint64_t i = 0; i < size(); ++i) {
      records_.append(i);
    }
    records_.append(record);
  } else if (records_.size() != 0) {
    records_.append(record);
  }
  forms_.append(static_cast<std::uint64_t>(value.kind) | (value.direct ? kDirect : 0));
  decoded_nbytes_.append(value.decoded_nbytes);
  steps_.append(value.steps);
  slice_counts_.append(value.slices.size());
  if (value.slices.size() == 1) {
    slice_offsets_.append(value.slices[0].begin - payload_offset);
    slice_nbytes_.append(value.direct ? 0 : value.slices[0].nbytes());
    return;
  }
  slice_offsets_.append(value.slices.empty() ? 0 : more_.size());
  slice_nbytes_.append(0);
  for (const ByteRange& slice : value.slices) {
    more_.push_back({slice.begin - payload_offset, slice.end - payload_offset});
  }
}

void FeatureRows::note(std::uint64_t record, const FeatureValue& value) {
  if (value.kind != ValueKind::kNone) {
    const bool clashes = kind_ != ValueKind::kNone && kind_ != value.kind;
    kind_ = clashes ? ValueKind::kMixed : value.kind;
    if (kind_ == ValueKind::kMixed && !clash_) {
      clash_ = record;
    }
  }
  single_ = single_ && value.values == 1;
  if (value.steps > 0) {
    const bool differs = step_nbytes_ && *step_nbytes_ != value.step_nbytes;
    if ((differs || value.steps_differ) && !uneven_) {
      uneven_ = record;
    }
    step_nbytes_ = value.step_nbytes;
  }
}

bool FeatureRows::fits(const FeatureValue& value) const {
  if (size() == 0) {
    return false;
  }
  const bool same_kind =
      kind_ == ValueKind::kMixed || value.kind == kind_ || value.kind == ValueKind::kNone;
  const bool same_size = !decoded_nbytes_.constant() || value.decoded_nbytes == decoded_nbytes_[0];
  const bool same_steps = !steps_.constant() || value.steps == steps_[0];
  const bool same_step =
      value.steps == 0 || uneven_ || (!value.steps_differ && step_nbytes_ == value.step_nbytes);
  return same_kind && same_size && same_steps && same_step && (!single_ || value.values == 1);
}

std::optional<std::uint64_t> FeatureRows::step_nbytes() const {
  return uneven_ ? std::nullopt : step_nbytes_;
}

void FeatureRows::shrink() {
  for (PackedColumn* column : {&records_, &forms_, &decoded_nbytes_, &steps_, &slice_counts_,
                               &slice_offsets_, &slice_nbytes_}) {
    column->shrink();
  }
  more_.shrink_to_fit();
}

void PackedColumn::write(PageWriter& page) const {
  page.number(size_);
  page.number(first_);
  page.number(width_);
  page.array(bytes_);
}

PackedColumn PackedColumn::read(PageReader& page) {
  PackedColumn column;
  column.size_ = page.number();
  column.first_ = page.number();
  column.width_ = static_cast<unsigned>(page.number(8));
  column.bytes_ = page.array<std::byte>();
  PageReader::require(column.width_ == 0
                          ? column.bytes_.empty()
                          : column.bytes_.size() % column.width_ == 0 &&
                                column.bytes_.size() / column.width_ == column.size_);
  return column;
}

void FeatureRows::write(PageWriter& page) const {
  for (const PackedColumn* column : {&records_, &forms_, &decoded_nbytes_, &steps_, &slice_counts_,
                                     &slice_offsets_, &slice_nbytes_}) {
    column->write(page);
  }
  page.array(more_);
  page.number(static_cast<std::uint64_t>(kind_));
  page.flag(single_);
  page.optional(step_nbytes_);
  page.optional(clash_);
  page.optional(uneven_);
}

FeatureRows FeatureRows::read(PageReader& page) {
  FeatureRows rows;
  for (PackedColumn* column : {&rows.records_, &rows.forms_, &rows.decoded_nbytes_, &rows.steps_,
                               &rows.slice_counts_, &rows.slice_offsets_, &rows.slice_nbytes_}) {
    *column = PackedColumn::read(page);
    PageReader::require(column->size() == rows.forms_.size() || column == &rows.records_);
  }
  PageReader::require(rows.records_.size() == 0 || rows.records_.size() == rows.size());
  rows.more_ = page.array<ByteRange>();
  rows.kind_ = static_cast<ValueKind>(page.number(static_cast<std::uint64_t>(ValueKind::kMixed)));
  rows.single_ = page.flag();
  rows.step_nbytes_ = page.optional();
  rows.clash_ = page.optional();
  rows.uneven_ = page.optional();
  return rows;
}

void write_features(const FeatureMap& features, PageWriter& page) {
  page.number(features.size());
  for (const auto& [name, rows] : features) {
    page.text(name);
    rows->write(page);
  }
}

FeatureMap read_features(PageReader& page) {
  FeatureMap features;
  for (std::uint64_t left = page.number(kMaxFeatures); left > 0; --left) {
    std::string name = page.text();
    features.emplace(std::move(name), std::make_shared<const FeatureRows>(FeatureRows::read(page)));
  }
  return features;
}

std::optional<std::uint64_t> FeatureRows::find(std::uint64_t record) const {
  if (records_.size() == 0) {
    return record < size() ? std::optional(record) : std::nullopt;
  }
  const std::uint64_t row = records_.lower_bound(record);
  return row < size() && records_[row] == record ? std::optional(row) : std::nullopt;
}

FeatureRows::Row FeatureRows::operator[](std::uint64_t row) const {
  const std::uint64_t form = forms_[row];
  return {static_cast<ValueKind>(form & (kDirect - 1)), (form & kDirect) != 0, decoded_nbytes_[row],
          steps_[row]};
}

std::span<const ByteRange> FeatureRows::slices(std::uint64_t row, ByteRange& single) const {
  const std::uint64_t count = slice_counts_[row];
  const std::uint64_t offset = slice_offsets_[row];
  if (count != 1) {
    // A damaged page may say anything.
    PageReader::require(lies_within(offset, count, more_.size()));
    return more_.span().subspan(offset, count);
  }
  const bool direct = (forms_[row] & kDirect) != 0;
  single = {offset, offset + (direct ? decoded_nbytes_[row] : slice_nbytes_[row])};
  return {&single, 1};
}

void FeatureIndex::feature(std::string_view name, FeatureValue& value) {
  take(features_, name, value, false);
}

void FeatureIndex::feature_list(std::string_view name, FeatureValue& value) {
  take(lists_, name, value, true);
}

void FeatureIndex::take(Slots& slots, std::string_view name, FeatureValue& value, bool is_list) {
  auto found = slots.find(name);
  if (found == slots.end()) {
    names_nbytes_ += name.size();
    if (features_.size() + lists_.size() == kMaxFeatures || names_nbytes_ > kMaxNamesNbytes) {
      throw file_error(
          ErrorKind::kTooLarge, source_name_,
          fmt::format("the Examples have {} feature names of {} bytes in all and more, "
                      "expected at most {} of {} bytes; --decode x=raw shows the "
                      "records undecoded",
                      features_.size() + lists_.size() + 1, names_nbytes_, kMaxFeatures,
                      kMaxNamesNbytes));
    }
    found = slots.try_emplace(std::string(name)).first;
    found->second.is_list = is_list;
  }
  Slot& slot = found->second;
  if (!slot.touched) {
    slot.touched = true;
    touched_.push_back(&slot);
  }
  std::swap(slot.pending, value);
}

bool FeatureIndex::has_lists() const {
  return std::any_of(touched_.begin(), touched_.end(), [](const Slot* s) { return s->is_list; });
}

// A feature without a kind is as good as absent; an empty list of steps is not.
bool FeatureIndex::has_value(const Slot& slot) {
  return slot.is_list || slot.pending.kind != ValueKind::kNone;
}

bool FeatureIndex::surprising() const {
  std::uint64_t still_dense = 0;
  for (const Slot* slot : touched_) {
    if (!has_value(*slot)) {
      continue;
    }
    if (!slot->rows->fits(slot->pending)) {
      return true;
    }
    still_dense += dense(*slot) ? 1 : 0;
  }
  return still_dense < dense_slots_;
}

void FeatureIndex::commit(std::uint64_t record, std::uint64_t payload_offset) {
  ++committed_;
  std::uint64_t dense_slots = 0;
  for (Slot* slot : touched_) {
    if (has_value(*slot)) {
      slot->rows->append(record, slot->pending, payload_offset);
      dense_slots += dense(*slot) ? 1 : 0;
    }
  }
  dense_slots_ = dense_slots;
  discard();
}

void FeatureIndex::discard() {
  for (Slot* slot : touched_) {
    slot->touched = false;
  }
  touched_.clear();
}

FeatureMap FeatureIndex::finished(const Slots& slots) {
  FeatureMap map;
  for (const auto& [name, slot] : slots) {
    if (slot.rows->kind() != ValueKind::kNone) {
      slot.rows->shrink();
      map.emplace(name, slot.rows);
    }
  }
  return map;
}

}  // namespace npyfs
