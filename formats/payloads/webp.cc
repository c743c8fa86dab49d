// SPDX-License-Identifier: Apache-2.0
//
// libwebp with its defaults.

#include <webp/decode.h>

#include <string>

#include "formats/bytes/error.h"
#include "formats/payloads/image_codecs.h"

namespace npyfs {

namespace {

const char* status_text(VP8StatusCode status) {
  switch (status) {
    case VP8_STATUS_OK:
      return "its size is not what its header says";
    case VP8_STATUS_NOT_ENOUGH_DATA:
    case VP8_STATUS_SUSPENDED:
      return "it ends early";
    case VP8_STATUS_UNSUPPORTED_FEATURE:
      return "it is of a kind that libwebp does not decode";
    default:
      return "its bits make no picture";
  }
}

}  // namespace

void decode_webp(const ImageInfo& info, std::span<const std::byte> stored,
                 std::span<std::byte> out) {
  const auto* const bytes = reinterpret_cast<const std::uint8_t*>(stored.data());
  WebPDecoderConfig config;
  VP8StatusCode status = WebPInitDecoderConfig(&config) != 0
                             ? WebPGetFeatures(bytes, stored.size(), &config.input)
                             : VP8_STATUS_INVALID_PARAM;
  bool done = false;
  if (status == VP8_STATUS_OK && config.input.width == static_cast<int>(info.width) &&
      config.input.height == static_cast<int>(info.height)) {
    config.output.colorspace = info.channels == 4 ? MODE_RGBA : MODE_RGB;
    config.output.is_external_memory = 1;
    config.output.u.RGBA.rgba = reinterpret_cast<std::uint8_t*>(out.data());
    config.output.u.RGBA.stride = static_cast<int>(info.width * info.channels);
    config.output.u.RGBA.size = out.size();
    status = WebPDecode(bytes, stored.size(), &config);
    done = status == VP8_STATUS_OK;
  }
  if (!done) {
    throw Error(ErrorKind::kCorrupt, std::string("the webp is damaged: ") + status_text(status));
  }
}

}  // namespace npyfs
