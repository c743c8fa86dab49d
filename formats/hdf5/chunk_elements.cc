// SPDX-License-Identifier: Apache-2.0

#include "formats/hdf5/chunk_elements.h"

#include <fmt/format.h>

#include <algorithm>

namespace npyfs {

namespace {

constexpr std::uint64_t kUnlimited = ~std::uint64_t{0};

}  // namespace

PlaceNumbers::PlaceNumbers(const Shape& most, const Shape& chunk_shape, bool unlimited_first) {
  for (std::size_t axis = 0; axis < most.size(); ++axis) {
    axes_.push_back(axis);
  }
  const auto unlimited = std::find(most.begin(), most.end(), kUnlimited);
  if (unlimited_first && unlimited != most.end()) {
    const auto axis = unlimited - most.begin();
    std::rotate(axes_.begin(), axes_.begin() + axis, axes_.begin() + axis + 1);
  }
  for (const std::size_t axis : axes_) {
    lengths_.push_back(divide_up(most[axis], chunk_shape[axis]));
  }
  place_.resize(axes_.size());
}

const Shape& PlaceNumbers::place_of(std::uint64_t number) {
  for (std::size_t i = axes_.size(); i-- > 1;) {
    const std::uint64_t length = std::max<std::uint64_t>(lengths_[i], 1);
    place_[axes_[i]] = number % length;
    number /= length;
  }
  place_[axes_[0]] = number;
  return place_;
}

ChunkElements::ChunkElements(const IndexEntries& entries, std::uint64_t nbytes,
                             bool unlimited_first, std::uint64_t address)
    : entries_(entries),
      nbytes_(nbytes),
      numbers_(entries.most_shape(), entries.where().chunk_shape, unlimited_first) {
  const std::uint64_t address_nbytes = entries.address_nbytes();
  const bool fits = entries.where().filtered
                        ? nbytes > address_nbytes + 4 && nbytes <= address_nbytes + 4 + 8
                        : nbytes == address_nbytes;
  if (!fits) {
    throw entries.corrupt(address, fmt::format("an index has elements of {} bytes", nbytes));
  }
}

void ChunkElements::take(StructureParser& fields, std::uint64_t number) {
  const std::uint64_t address = fields.take_address();
  StoredChunk chunk{0, entries_.full_nbytes(), 0};
  if (entries_.where().filtered) {
    chunk.nbytes = entries_.take_size(fields, nbytes_ - entries_.address_nbytes() - 4, address);
    chunk.filter_mask = static_cast<std::uint32_t>(fields.take(4));
  }
  entries_.hand_over(numbers_.place_of(number), address, chunk);
}

void ChunkElements::read_page(std::uint64_t address, std::uint64_t first, std::uint64_t count) {
  const auto bytes = entries_.reader().read_checked(address, count * nbytes_ + kChecksumNbytes, "");
  StructureParser elements(bytes, entries_.reader(), address);
  for (std::uint64_t i = 0; i < count; ++i) {
    take(elements, first + i);
  }
}

}  // namespace npyfs
