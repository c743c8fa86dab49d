// SPDX-License-Identifier: Apache-2.0
//
// jpeg, png and webp: their size from the header, their pixels by libjpeg-turbo, libpng and
// libwebp.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "formats/payloads/payload_bytes.h"

namespace npyfs {

enum class ImageCodec : std::uint8_t { kJpeg, kPng, kWebp };

struct ImageInfo {
  ImageCodec codec = ImageCodec::kJpeg;
  // Of the pixels as they are decoded: 1 grey, 2 grey and alpha, 3 RGB, 4 RGBA.
  std::uint8_t channels = 0;
  std::uint32_t height = 0;
  std::uint32_t width = 0;

  std::uint64_t nbytes() const { return std::uint64_t{height} * width * channels; }
  bool operator==(const ImageInfo&) const = default;
};

// What --image asks for: the size of all images, and their channels where these are given too.
struct ImageSize {
  std::uint32_t height = 0;
  std::uint32_t width = 0;
  std::optional<std::uint8_t> channels;
};

// Nothing where `head`, which may be short, begins as none of them.
std::optional<ImageCodec> find_image_codec(std::span<const std::byte> head);

// Reads SOF, IHDR, or the header of VP8, VP8L or VP8X; no pixels. Throws kCorrupt where it is
// damaged or claims more pixels than so many bytes can hold.
ImageInfo parse_image_header(ImageCodec codec, PayloadBytes& payload);

// Fills `out` (info.nbytes()) with the pixels, row by row. Throws kCorrupt, without a place, where
// the image is not what `info` says, ends early, or where its decoder warns of damage.
void decode_image(const ImageInfo& info, std::span<const std::byte> stored,
                  std::span<std::byte> out);

// Resizes so that the image just covers `size` (bilinear, between the centres of pixels, as
// OpenCV's INTER_LINEAR), cuts out the centre, and makes it `size.channels` where these are given.
// `out` is size.height x size.width x channels.
void fit_image(const ImageInfo& info, std::span<const std::byte> pixels, const ImageSize& size,
               std::span<std::byte> out);

}  // namespace npyfs
