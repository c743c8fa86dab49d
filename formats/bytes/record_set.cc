// SPDX-License-Identifier: Apache-2.0

#include "formats/bytes/record_set.h"

#include <exception>
#include <roaring/roaring64map.hh>
#include <string>

namespace npyfs {

struct RecordSet::Impl {
  Roaring64Map set;
};

RecordSet::RecordSet() : impl_(std::make_unique<Impl>()) {}
RecordSet::~RecordSet() = default;
RecordSet::RecordSet(RecordSet&&) noexcept = default;
RecordSet& RecordSet::operator=(RecordSet&&) noexcept = default;

void RecordSet::add(std::uint64_t record) { impl_->set.add(record); }

void RecordSet::optimize() { impl_->set.runOptimize(); }
bool RecordSet::contains(std::uint64_t record) const { return impl_->set.contains(record); }
bool RecordSet::empty() const { return impl_->set.isEmpty(); }
std::uint64_t RecordSet::size() const { return impl_->set.cardinality(); }

std::optional<std::uint64_t> RecordSet::next(std::uint64_t record) const {
  auto at = impl_->set.begin();
  return at.move(record) ? std::optional(*at) : std::nullopt;
}

void RecordSet::write(PageWriter& page) const {
  std::string bytes(impl_->set.getSizeInBytes(), '\0');
  impl_->set.write(bytes.data());
  page.text(bytes);
}

RecordSet RecordSet::read(PageReader& page) {
  const std::string bytes = page.text();
  // readSafe() takes the number of maps for granted, and counts only what follows it.
  PageReader::require(bytes.size() >= sizeof(std::uint64_t));
  RecordSet read;
  try {
    read.impl_->set = Roaring64Map::readSafe(bytes.data(), bytes.size() - sizeof(std::uint64_t));
  } catch (const std::exception&) {
    PageReader::require(false);
  }
  return read;
}

}  // namespace npyfs
