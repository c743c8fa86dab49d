// SPDX-License-Identifier: Apache-2.0

#include "formats/tables/record_map.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace npyfs {

// Joins runs that continue each other.
class RecordMap::RunBuilder {
 public:
  void add(const SourceRecord& place, std::uint64_t count) {
    if (count == 0) {
      return;
    }
    if (runs_.empty() || place.source != next_.source || place.record != next_.record) {
      runs_.push_back({size_, place});
    }
    size_ += count;
    next_ = {place.source, place.record + count};
  }

  RecordMap build() {
    runs_.shrink_to_fit();
    return {size_, std::make_shared<const std::vector<Run>>(std::move(runs_))};
  }

 private:
  std::vector<Run> runs_;
  std::uint64_t size_ = 0;
  SourceRecord next_;
};

SourceRecord RecordMap::List::at(std::uint64_t row) const {
  const std::uint64_t packed_place = (*packed)[row];
  if (source_shift == 64) {
    return {0, packed_place};
  }
  return {packed_place >> source_shift, packed_place & ((std::uint64_t{1} << source_shift) - 1)};
}

RecordMap RecordMap::all(std::uint64_t count) { return range({0, count}); }

RecordMap RecordMap::range(const Bounds& bounds) {
  RunBuilder runs;
  runs.add({0, bounds.begin}, bounds.size());
  return runs.build();
}

RecordMap RecordMap::without(const std::vector<std::uint64_t>& left_out, std::uint64_t count) {
  RunBuilder runs;
  std::uint64_t begin = 0;
  for (const std::uint64_t record : left_out) {
    runs.add({0, begin}, record - begin);
    begin = record + 1;
  }
  runs.add({0, begin}, count - begin);
  return runs.build();
}

RecordMap RecordMap::concatenation(const std::vector<std::uint64_t>& counts) {
  RunBuilder runs;
  for (std::uint64_t source = 0; source < counts.size(); ++source) {
    runs.add({source, 0}, counts[source]);
  }
  return runs.build();
}

RecordMap RecordMap::window(std::uint64_t count, std::uint64_t begin, std::uint64_t size) {
  RunBuilder runs;
  while (size > 0) {
    begin %= count;
    const std::uint64_t n = std::min(size, count - begin);
    runs.add({0, begin}, n);
    begin += n;
    size -= n;
  }
  return runs.build();
}

RecordMap RecordMap::permutation(std::shared_ptr<const Permutation> order) {
  const std::uint64_t size = order->size();
  return {size, Shuffled{std::move(order), 0, nullptr}};
}

template <typename PlaceAt>
RecordMap RecordMap::gather(std::uint64_t size, const PlaceAt& place_at) {
  std::uint64_t runs = 0;
  std::uint64_t most_source = 0;
  std::uint64_t most_record = 0;
  SourceRecord next;
  for (std::uint64_t row = 0; row < size; ++row) {
    const SourceRecord place = place_at(row);
    runs += row == 0 || place != next ? 1 : 0;
    most_source = std::max(most_source, place.source);
    most_record = std::max(most_record, place.record);
    next = {place.source, place.record + 1};
  }
  const auto record_bits = static_cast<unsigned>(std::bit_width(most_record));
  const bool packs = record_bits + static_cast<unsigned>(std::bit_width(most_source)) <= 64;
  if (runs * sizeof(Run) <= size * sizeof(std::uint64_t) || !packs) {
    RunBuilder builder;
    for (std::uint64_t row = 0; row < size; ++row) {
      builder.add(place_at(row), 1);
    }
    return builder.build();
  }
  List list;
  list.source_shift = most_source == 0 ? 64 : record_bits;
  std::vector<std::uint64_t> packed;
  packed.reserve(size);
  for (std::uint64_t row = 0; row < size; ++row) {
    const SourceRecord place = place_at(row);
    packed.push_back(place.record | (most_source == 0 ? 0 : place.source << list.source_shift));
  }
  list.packed = std::make_shared<const std::vector<std::uint64_t>>(std::move(packed));
  return {size, std::move(list)};
}

RecordMap RecordMap::list(const std::vector<std::uint64_t>& records) {
  return gather(records.size(), [&](std::uint64_t row) { return SourceRecord{0, records[row]}; });
}

RecordMap::Stretch RecordMap::stretch(std::uint64_t row) const {
  if (const auto* held = std::get_if<Runs>(&kind_)) {
    const std::vector<Run>& runs = **held;
    const auto behind =
        std::upper_bound(runs.begin(), runs.end(), row,
                         [](std::uint64_t wanted, const Run& run) { return wanted < run.row; });
    const Run& run = *(behind - 1);
    const std::uint64_t end = behind == runs.end() ? size_ : behind->row;
    return {{run.place.source, run.place.record + (row - run.row)}, end - row};
  }
  if (const auto* list = std::get_if<List>(&kind_)) {
    return {list->at(row), 1};
  }
  const auto& shuffled = std::get<Shuffled>(kind_);
  const std::uint64_t count = shuffled.order->size();
  const std::uint64_t at = shuffled.begin + row;
  const std::uint64_t record = (*shuffled.order)[at < count ? at : at % count];
  return {shuffled.base != nullptr ? (*shuffled.base)[record] : SourceRecord{0, record}, 1};
}

std::optional<Bounds> RecordMap::as_range() const {
  if (size_ == 0) {
    return Bounds{};
  }
  const auto* runs = std::get_if<Runs>(&kind_);
  if (runs == nullptr || (*runs)->size() != 1 || (*runs)->front().place.source != 0) {
    return std::nullopt;
  }
  const std::uint64_t begin = (*runs)->front().place.record;
  return Bounds{begin, begin + size_};
}

bool RecordMap::is_all(std::uint64_t count) const {
  const auto range = as_range();
  return size_ == count && range && range->begin == 0;
}

std::optional<std::uint64_t> RecordMap::window_of(const RecordMap& outer, std::uint64_t count) {
  const auto* held = std::get_if<Runs>(&outer.kind_);
  if (held == nullptr || outer.size_ == 0) {
    return std::nullopt;
  }
  const std::vector<Run>& runs = **held;
  for (std::size_t i = 1; i < runs.size(); ++i) {
    const std::uint64_t end = runs[i - 1].place.record + (runs[i].row - runs[i - 1].row);
    if (end != count || runs[i].place.record != 0) {
      return std::nullopt;
    }
  }
  return runs.front().place.record;
}

RecordMap RecordMap::select(const RecordMap& outer) const {
  if (outer.is_all(size_)) {
    return *this;
  }
  if (is_all(size_)) {
    return outer;
  }
  if (const auto* order = std::get_if<Shuffled>(&outer.kind_)) {
    const RecordMap base = order->base != nullptr ? select(*order->base) : *this;
    return {outer.size_,
            Shuffled{order->order, order->begin, std::make_shared<const RecordMap>(base)}};
  }
  if (const auto* shuffled = std::get_if<Shuffled>(&kind_)) {
    const std::uint64_t count = shuffled->order->size();
    const auto begin = window_of(outer, size_);
    if (begin && (size_ == count || *begin + outer.size_ <= size_)) {
      return {outer.size_,
              Shuffled{shuffled->order, (shuffled->begin + *begin) % count, shuffled->base}};
    }
  } else if (std::holds_alternative<Runs>(kind_) && std::holds_alternative<Runs>(outer.kind_)) {
    RunBuilder runs;
    for (std::uint64_t row = 0; row < outer.size_;) {
      const Stretch wanted = outer.stretch(row);
      for (std::uint64_t done = 0; done < wanted.count;) {
        const Stretch own = stretch(wanted.place.record + done);
        const std::uint64_t n = std::min(own.count, wanted.count - done);
        runs.add(own.place, n);
        done += n;
      }
      row += wanted.count;
    }
    return runs.build();
  }
  return gather(outer.size_, [&](std::uint64_t row) { return (*this)[outer[row].record]; });
}

}  // namespace npyfs
