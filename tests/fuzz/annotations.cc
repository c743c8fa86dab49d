// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as the annotations of a recording, and what they mark of one.

#include "formats/das/annotations.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "formats/bytes/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace npyfs;  // NOLINT
  constexpr std::uint64_t kFrames = 1000;
  try {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    for (const Annotation& row : parse_annotations(text, "fuzz")) {
      if (!row.marks()) {
        continue;
      }
      const FrameRange range = marked_frames(row, 2000, kFrames);
      if (range.begin > range.end || range.end > kFrames) {
        std::abort();  // frames that are not there
      }
    }
  } catch (const Error&) {  // what is refused is refused by this alone
  }
  return 0;
}
