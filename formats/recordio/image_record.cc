// SPDX-License-Identifier: Apache-2.0

#include "formats/recordio/image_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>

#include "formats/bytes/endian.h"
#include "formats/payloads/payload_table.h"

namespace npyfs {

namespace {

constexpr std::uint64_t kHeaderNbytes = 24;  // flag, label, id, id2
// Labels are kept in memory; the longest seen are lists of boxes with some hundred values.
constexpr std::uint32_t kMaxLabels = 4096;

}  // namespace

bool read_image_header(RecordFramer& framer, const FramedRecord& record, ImageHeader& header,
                       std::string& why) {
  if (record.nbytes < kHeaderNbytes) {
    why = fmt::format("the length of an ImageRecord is {}, expected {} or more", record.nbytes,
                      kHeaderNbytes);
    return false;
  }
  std::array<std::byte, kHeaderNbytes> fixed;
  framer.read_payload(record, 0, fixed);
  const auto flag = load_le<std::uint32_t>(fixed.data());
  const std::uint64_t room = (record.nbytes - kHeaderNbytes) / 4;
  if (flag > std::min<std::uint64_t>(room, kMaxLabels)) {
    why = fmt::format("the label count of an ImageRecord is {}, expected {} or less", flag,
                      std::min<std::uint64_t>(room, kMaxLabels));
    return false;
  }
  header.scalar = flag == 0;
  header.id = load_le<std::uint64_t>(fixed.data() + 8);
  header.id2 = load_le<std::uint64_t>(fixed.data() + 16);
  header.nbytes = kHeaderNbytes + std::uint64_t{4} * flag;
  if (header.scalar) {
    header.labels.assign(fixed.begin() + 4, fixed.begin() + 8);
  } else {
    header.labels.resize(std::size_t{4} * flag);
    framer.read_payload(record, kHeaderNbytes, header.labels);
  }
  return true;
}

ImageGuess guess_image(RecordFramer& framer, const FramedRecord& record) {
  ImageHeader header;
  std::string why;
  if (record.nbytes == 0) {
    return ImageGuess::kNoImage;
  }
  if (!read_image_header(framer, record, header, why) || header.id2 != 0) {
    return ImageGuess::kOther;
  }
  if (record.nbytes == header.nbytes) {
    return ImageGuess::kNoImage;
  }
  std::array<std::byte, kMagicNbytes> bytes;
  const std::span<std::byte> head =
      std::span(bytes).first(std::min<std::uint64_t>(bytes.size(), record.nbytes - header.nbytes));
  framer.read_payload(record, header.nbytes, head);
  return is_image(head) ? ImageGuess::kImage : ImageGuess::kOther;
}

}  // namespace npyfs
