// SPDX-License-Identifier: Apache-2.0
//
// Decoders that are given another image than the one whose header was looked at.

#include "formats/payloads/image.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "formats/bytes/crc.h"
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

// By hand: the pixels of the result lie at -1/4, 1/4, 3/4 and 5/4 of the source's.
TEST(FitImage, IsBilinearBetweenTheCentresOfPixels) {
  const ImageInfo info{ImageCodec::kPng, 1, 2, 2};
  const std::uint8_t pixels[] = {0, 100, 200, 40};
  std::vector<std::uint8_t> out(16);
  fit_image(info, std::as_bytes(std::span(pixels)), {4, 4, std::nullopt},
            std::as_writable_bytes(std::span(out)));
  const std::vector<std::uint8_t> expected = {0,   25,  75, 100,  //
                                              50,  59,  76, 85,   //
                                              150, 126, 79, 55,   //
                                              200, 160, 80, 40};
  EXPECT_EQ(out, expected);
}

TEST(ParsePng, AFlippedBitOfItsHeaderIsDamage) {
  const std::string image = read_image("rgb.png");
  for (std::size_t bit = 8 * 8; bit < 8 * 33; ++bit) {
    std::string flipped = image;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    try {
      parse(flipped);
      ADD_FAILURE() << "bit " << bit;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kCorrupt) << error.what();
    }
  }
}

// A header with its checksum, and `nbytes` behind it.
std::string png_of(std::uint32_t width, std::uint32_t height, char bits, char color,
                   std::size_t nbytes) {
  const auto big_endian = [](std::uint32_t value) {
    value = __builtin_bswap32(value);
    return std::string(reinterpret_cast<const char*>(&value), sizeof value);
  };
  std::string chunk = "IHDR" + big_endian(width) + big_endian(height);
  chunk += bits;
  chunk += color;
  chunk += std::string(3, '\0');
  return "\x89PNG\r\n\x1a\n" + big_endian(13) + chunk +
         big_endian(crc32(std::as_bytes(std::span(chunk)))) + std::string(nbytes, '\0');
}

TEST(ParsePng, AFlatPictureMayBeSmall) {
  // One bit a pixel, deflated to 1/1032, becomes three bytes.
  constexpr std::size_t kStored = std::size_t{20000} * 16000 / 8 / 1000;
  EXPECT_EQ(parse(png_of(20000, 16000, 1, 3, kStored)).nbytes(), 960000000U);
  EXPECT_THROW(parse(png_of(20000, 16000, 1, 3, kStored / 4)), Error);
  EXPECT_THROW(parse(png_of(20000, 20000, 1, 3, 4 * kStored)), Error);  // beyond 1 GiB
}

}  // namespace
}  // namespace npyfs
