// SPDX-License-Identifier: Apache-2.0
//
// Decoders that are given another image than the one whose header was looked at.

#include "formats/payloads/image.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "formats/bytes/error.h"

namespace npyfs {
namespace {

std::string read_image(const std::string& name) {
  const auto path = std::filesystem::path(NPYFS_TEST_DATA) / "payloads" / "images" / name;
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

ImageInfo parse(const std::string& image) {
  const auto bytes = std::as_bytes(std::span(image));
  MemoryBytes payload(bytes, "image");
  return parse_image_header(find_image_codec(bytes).value(), payload);
}

// Whether it is refused, with every byte behind `out` as it was.
bool is_refused(const ImageInfo& info, const std::string& image) {
  constexpr std::size_t kBehind = 1 << 20;
  std::vector<std::byte> out(info.nbytes() + kBehind, std::byte{0x5a});
  bool refused = false;
  try {
    decode_image(info, std::as_bytes(std::span(image)), std::span(out).first(info.nbytes()));
  } catch (const Error& error) {
    refused = error.kind() == ErrorKind::kCorrupt;
  }
  for (std::size_t i = info.nbytes(); i < out.size(); ++i) {
    if (out[i] != std::byte{0x5a}) {
      ADD_FAILURE() << "byte " << i - info.nbytes() << " behind the pixels is written";
      return refused;
    }
  }
  return refused;
}

TEST(DecodeImage, AnImageUnlikeItsHeaderIsRefused) {
  for (const std::string name :
       {"cmyk.jpg", "rgb.jpg", "grey.jpg", "progressive.jpg", "grey.png", "rgb.png", "rgba.png",
        "grey_alpha.png", "palette.png", "lossy.webp", "lossless_alpha.webp"}) {
    const std::string image = read_image(name);
    const ImageInfo info = parse(image);
    EXPECT_FALSE(is_refused(info, image)) << name;
    for (const int channels : {1, 2, 3, 4}) {
      ImageInfo other = info;
      other.channels = static_cast<std::uint8_t>(channels);
      // libwebp makes RGB and RGBA of all that it reads.
      if (channels != info.channels && info.codec != ImageCodec::kWebp) {
        EXPECT_TRUE(is_refused(other, image)) << name << " as " << channels << " channels";
      }
    }
    for (const int by : {-1, 1}) {
      ImageInfo wide = info;
      wide.width += static_cast<std::uint32_t>(by);
      EXPECT_TRUE(is_refused(wide, image)) << name;
      ImageInfo high = info;
      high.height += static_cast<std::uint32_t>(by);
      EXPECT_TRUE(is_refused(high, image)) << name;
    }
  }
}

}  // namespace
}  // namespace npyfs
