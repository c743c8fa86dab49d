// SPDX-License-Identifier: Apache-2.0

#include "formats/recordio/columns.h"

#include <algorithm>

namespace npyfs {

void PayloadColumn::append(std::span<const ExtentColumn::Place> runs, std::uint64_t skip,
                           std::uint64_t copies) {
  while (runs.size() > 1 && skip >= runs.front().nbytes) {
    skip -= runs.front().nbytes;
    runs = runs.subspan(1);
  }
  const ExtentColumn::Place first = {runs.front().offset + skip, runs.front().nbytes - skip};
  std::uint64_t nbytes = first.nbytes;
  const std::uint64_t first_run = runs_.size();
  if (runs.size() > 1) {
    runs_.push_back(first);
    for (const ExtentColumn::Place& run : runs.subspan(1)) {
      runs_.push_back(run);
      nbytes += run.nbytes;
    }
  }
  for (std::uint64_t i = 0; i < copies; ++i) {
    if (runs.size() > 1) {
      scattered_.push_back(places_.size());
      first_runs_.push_back(first_run);
    }
    equal_ = equal_ && (places_.size() == 0 || places_[0].nbytes == nbytes);
    places_.append(first.offset, nbytes);
  }
}

void PayloadColumn::append_damaged(std::uint64_t copies) {
  for (std::uint64_t i = 0; i < copies; ++i) {
    places_.append(0, 0);
  }
}

void PayloadColumn::shrink() {
  places_.shrink();
  scattered_.shrink_to_fit();
  first_runs_.shrink_to_fit();
  runs_.shrink_to_fit();
}

void PayloadColumn::write(PageWriter& page) const {
  places_.write(page);
  page.flag(equal_);
  page.array(scattered_);
  page.array(first_runs_);
  page.array(runs_);
}

void PayloadColumn::read(PageReader& page) {
  places_ = ExtentColumn::read(page);
  equal_ = page.flag();
  scattered_ = page.array<std::uint64_t>();
  first_runs_ = page.array<std::uint64_t>(scattered_.size());
  runs_ = page.array<ExtentColumn::Place>();
}

bool PayloadColumn::locate(std::uint64_t record, std::vector<Extent>& out) const {
  out.clear();
  const ExtentColumn::Place place = places_[record];
  const auto found = std::lower_bound(scattered_.begin(), scattered_.end(), record);
  if (found == scattered_.end() || *found != record) {
    out.push_back({source_.get(), place.offset, place.nbytes});
    return true;
  }
  std::uint64_t left = place.nbytes;
  for (std::uint64_t i = first_runs_[static_cast<std::size_t>(found - scattered_.begin())];
       left > 0; ++i) {
    // A damaged page may say anything.
    PageReader::require(i < runs_.size() && runs_[i].nbytes <= left);
    out.push_back({source_.get(), runs_[i].offset, runs_[i].nbytes});
    left -= runs_[i].nbytes;
  }
  return true;
}

std::optional<std::uint64_t> PayloadColumn::equal_nbytes() const {
  if (size() == 0 || !equal_ || !damage_->empty()) {
    return std::nullopt;
  }
  return places_[0].nbytes;
}

void ValueColumn::append(std::span<const std::byte> values, bool scalar, std::uint64_t copies) {
  const std::uint64_t width = values.size() / dtype_.itemsize;
  if (!first_seen_) {
    first_seen_ = true;
    width_ = width;
    scalar_ = scalar;
  }
  alike_ = alike_ && width == width_ && scalar == scalar_;
  if (dense_ && (width != width_ || copies != 1)) {
    spread();
  }
  if (!dense_) {
    begins_.append(copies, values_.size() / dtype_.itemsize);
    widths_.append(copies, static_cast<std::uint32_t>(width));
  }
  values_.append(values);
  size_ += copies;
}

void ValueColumn::append_damaged(std::uint64_t copies) {
  if (dense_) {
    spread();
  }
  begins_.append(copies, values_.size() / dtype_.itemsize);
  widths_.append(copies, 0);
  size_ += copies;
}

// What lay at record * width_ is said for each record from now on.
void ValueColumn::spread() {
  begins_.reserve(size_ + 1);
  for (std::uint64_t record = 0; record < size_; ++record) {
    begins_.push_back(record * width_);
  }
  widths_.append(size_, static_cast<std::uint32_t>(width_));
  dense_ = false;
}

void ValueColumn::shrink() {
  values_.shrink_to_fit();
  begins_.shrink_to_fit();
  widths_.shrink_to_fit();
}

void ValueColumn::write(PageWriter& page) const {
  page.array(values_);
  page.number(size_);
  page.number(width_);
  page.flag(scalar_);
  page.flag(alike_);
  page.flag(dense_);
  page.array(begins_);
  page.array(widths_);
}

void ValueColumn::read(PageReader& page) {
  values_ = page.array<std::byte>();
  size_ = page.number();
  width_ = page.number();
  scalar_ = page.flag();
  alike_ = page.flag();
  dense_ = page.flag();
  begins_ = page.array<std::uint64_t>();
  widths_ = page.array<std::uint32_t>(begins_.size());
  first_seen_ = true;
  const std::uint64_t values = values_.size() / dtype_.itemsize;
  PageReader::require(dense_ ? width_ == 0 || size_ <= values / width_ : begins_.size() == size_);
}

Shape ValueColumn::shape_of(std::uint64_t record) const {
  return alike_ && scalar_ ? Shape{} : Shape{width_of(record)};
}

void ValueColumn::inspect(std::uint64_t record, Item& item) const {
  item = {};
  item.damage = damage_->find(record);
  if (item.damage == nullptr) {
    item.dtype = dtype_;
    item.shape = shape_of(record);
  }
}

std::optional<Item> ValueColumn::uniform() const {
  if (!alike_ || size_ == 0 || !damage_->empty()) {
    return std::nullopt;
  }
  Item item;
  inspect(0, item);
  return item;
}

void ValueColumn::plan(std::uint64_t record, ByteRange range, Plan& plan) const {
  const std::uint64_t base = begin_of(record) * dtype_.itemsize;
  PageReader::require(lies_within(base, range.end, values_.size()));
  plan.add_memory(values_.data() + base + range.begin, range.nbytes());
}

std::uint64_t ValueColumn::run(std::uint64_t record) const {
  constexpr std::uint64_t kLookAhead = 1024;  // bounds the time of one call
  const std::uint64_t end = record + damage_->run(record, size_);
  if (dense_) {
    return end - record;
  }
  std::uint64_t next = record + 1;
  while (next < std::min(end, record + kLookAhead) && widths_[next] == widths_[record] &&
         begins_[next] == begins_[next - 1] + widths_[next - 1]) {
    ++next;
  }
  return next - record;
}

void KeyColumn::append(std::int64_t key) {
  if (size_ == 0) {
    first_ = key;
  } else if (integers_.empty() && key != counted(size_)) {
    for (std::uint64_t record = 0; record < size_; ++record) {
      integers_.push_back(counted(record));
    }
  }
  if (!integers_.empty()) {
    integers_.push_back(key);
  }
  ++size_;
}

void KeyColumn::append(std::string_view key) {
  texts_.append(key);
  ++size_;
}

void KeyColumn::shrink() {
  integers_.shrink_to_fit();
  texts_.shrink();
}

void KeyColumn::write(PageWriter& page) const {
  page.number(size_);
  page.number(static_cast<std::uint64_t>(first_));
  page.array(integers_);
  texts_.write(page);
}

void KeyColumn::read(PageReader& page) {
  size_ = page.number();
  first_ = static_cast<std::int64_t>(page.number());
  integers_ = page.array<std::int64_t>();
  texts_ = StringList::read(page);
  PageReader::require((integers_.empty() || integers_.size() == size_) &&
                      (texts_.size() == 0 || texts_.size() == size_));
}

}  // namespace npyfs
