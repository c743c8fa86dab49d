// SPDX-License-Identifier: Apache-2.0
//
// ImageRecord: labels and an id before an image, in the payload of a RecordIO record. See
// FORMAT.md.

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "formats/recordio/framing.h"

namespace npyfs {

// What --decode calls such records.
inline constexpr const char* kImageRecord = "imagerecord";

// What stands before the image.
struct ImageHeader {
  bool scalar = true;             // the label is the header's own
  std::vector<std::byte> labels;  // float32
  std::uint64_t id = 0;
  std::uint64_t id2 = 0;
  std::uint64_t nbytes = 0;  // the image begins here
};

// Reads the header of a payload. False: what is there cannot be one, and `why` is
// "<what> is <found>, expected <rule>".
bool read_image_header(RecordFramer& framer, const FramedRecord& record, ImageHeader& header,
                       std::string& why);

// What the bytes of a payload make believe. Nothing says that a record is an ImageRecord.
enum class ImageGuess {
  kImage,    // a header, then a JPEG, PNG or WebP
  kNoImage,  // could be a header, and nothing follows; or is empty
  kOther,
};
ImageGuess guess_image(RecordFramer& framer, const FramedRecord& record);

}  // namespace npyfs
