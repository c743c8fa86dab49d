// SPDX-License-Identifier: Apache-2.0

#include "formats/bytes/record_set.h"

#include <algorithm>
#include <roaring/roaring64map.hh>
#include <stdexcept>

namespace npyfs {

struct RecordSet::Impl {
  Roaring64Map set;
};

RecordSet::RecordSet() : impl_(std::make_unique<Impl>()) {}
RecordSet::~RecordSet() = default;
RecordSet::RecordSet(RecordSet&&) noexcept = default;
RecordSet& RecordSet::operator=(RecordSet&&) noexcept = default;

void RecordSet::add(std::uint64_t record) { impl_->set.add(record); }

void RecordSet::add_range(std::uint64_t begin, std::uint64_t end) {
  // Roaring64Map of this version has no ranges: they are made in each 32-bit half.
  constexpr std::uint64_t kHalf = std::uint64_t{1} << 32;
  while (begin < end) {
    const std::uint64_t base = begin / kHalf * kHalf;
    const std::uint64_t stop = std::min(end, base + kHalf);
    Roaring part;
    part.addRange(begin - base, stop - base);
    if (base == 0) {
      impl_->set |= Roaring64Map(part);
    } else {
      for (std::uint64_t record = begin; record < stop; ++record) {
        impl_->set.add(record);
      }
    }
    begin = stop;
  }
}

void RecordSet::remove(std::uint64_t record) { impl_->set.remove(record); }
void RecordSet::optimize() { impl_->set.runOptimize(); }
bool RecordSet::contains(std::uint64_t record) const { return impl_->set.contains(record); }
bool RecordSet::empty() const { return impl_->set.isEmpty(); }
std::uint64_t RecordSet::size() const { return impl_->set.cardinality(); }

std::uint64_t RecordSet::select(std::uint64_t rank) const {
  std::uint64_t member = 0;
  if (!impl_->set.select(rank, &member)) {
    throw std::out_of_range("RecordSet::select");
  }
  return member;
}

std::uint64_t RecordSet::run(std::uint64_t rank) const {
  // The gap-free stretch ends where a member's rank no longer keeps pace; found by doubling, then
  // by halving.
  const std::uint64_t first = select(rank);
  const std::uint64_t most = size() - rank;
  std::uint64_t good = 1;
  std::uint64_t step = 1;
  while (good < most && step > 0) {
    const std::uint64_t probe = std::min(most, good + step);
    if (select(rank + probe - 1) == first + probe - 1) {
      good = probe;
      step *= 2;
    } else if (probe == good + 1) {
      break;
    } else {
      step /= 2;
    }
  }
  return good;
}

}  // namespace npyfs
