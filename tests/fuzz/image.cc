// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a jpeg, png or webp: the header by our own parser, the pixels by the libraries.

#include "formats/payloads/image.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "formats/bytes/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace npyfs;  // NOLINT
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto codec = find_image_codec(bytes);
  if (!codec) {
    return 0;
  }
  try {
    MemoryBytes payload(bytes, "fuzz");
    const ImageInfo info = parse_image_header(*codec, payload);
    if (info.nbytes() > 1 << 22) {
      return 0;  // time, not truth
    }
    std::vector<std::byte> pixels(info.nbytes());
    decode_image(info, bytes, pixels);
    const ImageSize size_wanted{7, 5, 3};
    std::vector<std::byte> out(std::size_t{7} * 5 * 3);
    fit_image(info, pixels, size_wanted, out);
  } catch (const Error&) {  // what is refused is refused by this alone
  }
  return 0;
}
