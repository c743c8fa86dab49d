// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "formats/payloads/payload_table.h"

namespace npyfs {
namespace {

std::string_view extension(std::string_view head) {
  return extension_by_magic(std::as_bytes(std::span(head)));
}
bool image(std::string_view head) { return is_image(std::as_bytes(std::span(head))); }

TEST(Payload, ImagesAreKnownByTheirWholeMagic) {
  const std::string png = "\x89PNG\r\n\x1a\n";
  EXPECT_TRUE(image(png + "...."));
  EXPECT_TRUE(image("\xff\xd8\xff\xe0"));
  EXPECT_TRUE(image("RIFF\x01\x02\x03\x04WEBPVP8 "));
  EXPECT_FALSE(image(png.substr(0, 7)));
  EXPECT_FALSE(image("\x89PNG\n\x1a\n...."));
  EXPECT_FALSE(image("RIFF\x01\x02\x03\x04WEB"));
  EXPECT_FALSE(image("RIFF\x01\x02\x03"));
  EXPECT_FALSE(image("12345678WEBPVP8 "));
  EXPECT_FALSE(image("RIFF\x01\x02\x03\x04WAVEfmt "));
  EXPECT_FALSE(image(""));
}

TEST(Payload, ExtensionsFollowTheSameMagics) {
  EXPECT_EQ(extension("RIFF\x01\x02\x03\x04WEBPVP8 "), "webp");
  EXPECT_EQ(extension("12345678WEBPVP8 "), "bin");
  for (const std::string name : {"RIFF", "RIFX", "RF64", "BW64"}) {
    EXPECT_EQ(extension(name + "\x01\x02\x03\x04WAVEfmt "), "wav");
  }
  EXPECT_EQ(extension("12345678WAVEfmt "), "bin");
  EXPECT_EQ(extension("\x93NUMPY\x01"), "npy");
  EXPECT_EQ(extension("fLaC"), "flac");
  EXPECT_EQ(extension("fLa"), "bin");
  EXPECT_EQ(extension(""), "bin");
}

}  // namespace
}  // namespace npyfs
