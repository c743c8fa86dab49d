// SPDX-License-Identifier: Apache-2.0
//
// Compressed audio whose source fails. What is decoded is tested in tests/arrays/payloads_test.cc.

#include "formats/payloads/sound.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "formats/bytes/error.h"

namespace npyfs {
namespace {

std::string read_audio(const std::string& name) {
  const auto path = std::filesystem::path(NPYFS_TEST_DATA) / "payloads" / "audio" / name;
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

// A payload whose reads fail from the `good`th on.
class FailingBytes : public PayloadBytes {
 public:
  FailingBytes(const std::string& bytes, int good)
      : PayloadBytes(bytes.size()), bytes_(bytes), good_(good) {}
  Error fault(std::uint64_t offset, const std::string& text) const override {
    return corrupt_at("audio", offset, text);
  }
  bool failed() const { return failed_; }

 private:
  std::span<const std::byte> do_read(std::uint64_t offset, std::size_t nbytes) override {
    if (good_-- <= 0) {
      failed_ = true;
      throw Error(ErrorKind::kIo, "cannot read", EIO);
    }
    return std::as_bytes(std::span(bytes_)).subspan(offset, nbytes);
  }

  const std::string& bytes_;
  int good_;
  bool failed_ = false;
};

// Whichever read it is that fails, nothing is concluded from what was read before.
TEST(ReadSoundInfo, ASourceThatFailsIsNoEnd) {
  for (const std::string name : {"stream.flac", "s16.flac", "vorbis_stereo.ogg", "sox.mp3"}) {
    const std::string audio = read_audio(name);
    FailingBytes whole(audio, INT32_MAX);
    const std::uint64_t frames = read_sound_info(whole).frames;
    bool failed = true;
    int thrown = 0;
    for (int good = 0; failed; ++good) {
      FailingBytes payload(audio, good);
      try {
        EXPECT_EQ(read_sound_info(payload).frames, frames) << name << " " << good;
        EXPECT_FALSE(payload.failed()) << name << " " << good;
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::kIo) << name << ": " << error.what();
        ++thrown;
      }
      failed = payload.failed();
    }
    EXPECT_GT(thrown, 0) << name;
  }
}

}  // namespace
}  // namespace npyfs
