// SPDX-License-Identifier: Apache-2.0

#include "formats/payloads/payload_bytes.h"

#include <fmt/format.h>

#include <algorithm>

#include "formats/bytes/byte_range.h"
#include "formats/bytes/zero_source.h"
#include "formats/extents.h"

namespace npyfs {

std::span<const std::byte> PayloadBytes::at(std::uint64_t offset, std::size_t nbytes) {
  if (!lies_within(offset, nbytes, nbytes_)) {
    throw fault(offset, fmt::format("{} bytes are needed, expected at most {} as the record ends "
                                    "there; it is cut short or damaged",
                                    nbytes, offset < nbytes_ ? nbytes_ - offset : 0));
  }
  return do_read(offset, nbytes);
}

std::span<const std::byte> PayloadBytes::at_most(std::uint64_t offset, std::size_t nbytes) {
  if (offset >= nbytes_) {
    return {};
  }
  return do_read(offset, std::min<std::uint64_t>(nbytes, nbytes_ - offset));
}

bool RecordBytes::open(std::uint64_t record) {
  record_ = record;
  window_.clear();
  std::uint64_t sum = 0;
  std::uint64_t holes = 0;
  const bool present = column_.locate(record, extents_);
  if (present) {
    for (const Extent& extent : extents_) {
      sum += extent.nbytes;
      holes += extent.source == &zero_source() ? extent.nbytes : 0;
    }
  }
  set_nbytes(sum, holes);
  return present;
}

Error RecordBytes::fault(std::uint64_t offset, const std::string& text) const {
  std::uint64_t begin = 0;
  for (const Extent& extent : extents_) {
    if (offset - begin < extent.nbytes || &extent == &extents_.back()) {
      return corrupt_at(extent.source->name(), extent.offset + (offset - begin), text);
    }
    begin += extent.nbytes;
  }
  return {ErrorKind::kCorrupt, text};
}

std::span<const std::byte> RecordBytes::do_read(std::uint64_t offset, std::size_t nbytes) {
  if (offset < window_offset_ || !lies_within(offset - window_offset_, nbytes, window_.size())) {
    window_.resize(
        std::min<std::uint64_t>(std::max(nbytes, window_nbytes_), this->nbytes() - offset));
    window_offset_ = offset;
    read_stored(column_, record_, offset, window_);
  }
  return std::span<const std::byte>(window_).subspan(offset - window_offset_, nbytes);
}

}  // namespace npyfs
