// SPDX-License-Identifier: Apache-2.0

#include "formats/tfrecord/walk.h"

#include <fmt/format.h>

#include <algorithm>

#include "formats/bytes/byte_range.h"
#include "formats/bytes/crc.h"
#include "formats/bytes/endian.h"

namespace npyfs {

namespace {

// No protobuf message is larger. A record that claims more than this, and more than the whole file,
// was not cut: its length is wrong, and an array of that size would be absurd.
constexpr std::uint64_t kMaxCutNbytes = 0x7fffffff;

}  // namespace

bool is_record_header(std::span<const std::byte> head) {
  return head.size() >= kHeaderNbytes &&
         load_le<std::uint32_t>(head.data() + 8) == mask_crc32c(crc32c(head.first(8)));
}

RecordWalk::Step RecordWalk::next() {
  const std::uint64_t left = source_.nbytes() - offset_;
  if (left == 0) {
    return {};
  }
  if (left < kHeaderNbytes) {
    return cut_header(left);
  }
  const auto header = window_.at(offset_, kHeaderNbytes);
  if (!is_record_header(header)) {
    return {Step::Kind::kLost, offset_, 0,
            corrupt_at(source_.name(), offset_,
                       fmt::format("the checksum of a record's length is {:#010x}, expected "
                                   "{:#010x}; the file is damaged there or no TFRecord file",
                                   load_le<std::uint32_t>(header.data() + 8),
                                   mask_crc32c(crc32c(header.first(8)))))};
  }
  const auto nbytes = load_le<std::uint64_t>(header.data());
  const auto framed = checked_add(nbytes, kHeaderNbytes + kFooterNbytes);
  if (!framed || *framed > left) {
    return bad_length(nbytes, left);
  }
  Step step{Step::Kind::kRecord, offset_ + kHeaderNbytes, nbytes, std::nullopt};
  offset_ += *framed;
  return step;
}

// A file that begins with so few bytes has no record at all: that is no cut.
RecordWalk::Step RecordWalk::cut_header(std::uint64_t left) const {
  const auto kind = offset_ == 0 ? Step::Kind::kLost : Step::Kind::kCutHeader;
  return {kind, offset_, 0,
          corrupt_at(source_.name(), offset_,
                     fmt::format("a record's header has {} bytes, expected {}; the file is cut "
                                 "short or no TFRecord file",
                                 left, kHeaderNbytes))};
}

RecordWalk::Step RecordWalk::bad_length(std::uint64_t nbytes, std::uint64_t left) const {
  const bool cut = nbytes <= std::max(source_.nbytes(), kMaxCutNbytes);
  return {cut ? Step::Kind::kCutRecord : Step::Kind::kLost, offset_ + kHeaderNbytes, nbytes,
          corrupt_at(source_.name(), offset_,
                     fmt::format("a record's length is {}, expected at most {} as the file ends "
                                 "there; the file is {}",
                                 nbytes, left - std::min(left, kHeaderNbytes + kFooterNbytes),
                                 cut ? "cut short" : "damaged"))};
}

}  // namespace npyfs
