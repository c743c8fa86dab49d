// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as what the child that runs libhdf5 says of a file: frames one after another.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>

#include "formats/bytes/endian.h"
#include "formats/bytes/error.h"
#include "formats/hdf5/description.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace npyfs;  // NOLINT
  static const std::string kName = "a.h5";
  auto bytes = std::as_bytes(std::span(data, size));
  DescriptionBudget budget;
  DescriptionReader reader(kName, budget);
  try {
    while (bytes.size() >= kFrameHeadNbytes) {
      const std::size_t nbytes = load_le<std::uint32_t>(bytes.data()) % (bytes.size() + 1);
      WireFrame frame;
      frame.kind = static_cast<FrameKind>(16 + std::to_integer<unsigned>(bytes[4]) % 8);
      bytes = bytes.subspan(kFrameHeadNbytes);
      const auto fields = bytes.first(std::min(nbytes, bytes.size()));
      frame.bytes.assign(fields.begin(), fields.end());
      bytes = bytes.subspan(fields.size());
      if (reader.add(frame)) {
        break;
      }
    }
    for (const ArrayDescription& array : reader.take().arrays) {
      if (!array.fill_value.empty() && array.fill_value.size() != array.dtype.itemsize) {
        std::abort();
      }
    }
  } catch (const Error&) {  // what is refused is refused by this alone
  }
  return 0;
}
