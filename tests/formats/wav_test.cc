// SPDX-License-Identifier: Apache-2.0
//
// Headers of waves as writers other than Kaldi's make them, laid out by hand from the RIFF rules.

#include "formats/payloads/wav.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "formats/bytes/error.h"

namespace npyfs {

namespace {

using std::string_literals::operator""s;

std::string number(std::uint64_t value, int nbytes, bool big = false) {
  std::string bytes;
  for (int i = 0; i < nbytes; ++i) {
    bytes += static_cast<char>(value >> (8 * i));
  }
  if (big) {
    std::reverse(bytes.begin(), bytes.end());
  }
  return bytes;
}

std::string chunk(const std::string& id, const std::string& body, bool big = false) {
  return id + number(body.size(), 4, big) + body + (body.size() % 2 != 0 ? "\0"s : "");
}

std::string format(int code, int channels, int bits, bool big = false) {
  const int frame = channels * ((bits + 7) / 8);
  return number(code, 2, big) + number(channels, 2, big) + number(8000, 4, big) +
         number(8000 * frame, 4, big) + number(frame, 2, big) + number(bits, 2, big);
}

std::string riff(const std::string& chunks, const std::string& magic = "RIFF") {
  return magic + number(chunks.size() + 4, 4, magic == "RIFX") + "WAVE" + chunks;
}

WavHeader parse(const std::string& wave) {
  const auto bytes = std::as_bytes(std::span(wave));
  const MemorySource source("t.wav", std::vector(bytes.begin(), bytes.end()));
  WindowReader window(source);
  return parse_wav(source, window, 0, wave.size());
}

std::string decoded(const WavHeader& header, const std::string& wave, std::size_t nbytes) {
  std::string out(nbytes, '\0');
  decode_wav(header.sample, header.big_endian,
             std::as_bytes(std::span(wave)).subspan(header.data_offset),
             std::as_writable_bytes(std::span(out)));
  return out;
}

TEST(Wav, SamplesOf24BitsStandInTheUpperThreeBytes) {
  const std::string wave = riff(chunk("fmt ", format(1, 1, 24)) + chunk("data", "\1\2\3\4\5\6"));
  const WavHeader header = parse(wave);
  EXPECT_EQ(header.frames, 2U);
  EXPECT_EQ(wav_dtype(header.sample), DType::simple("<i4"));
  EXPECT_EQ(decoded(header, wave, 8), "\0\1\2\3\0\4\5\6"s);
}

TEST(Wav, FloatsAndBigEndianSamples) {
  EXPECT_EQ(
      parse(riff(chunk("fmt ", format(3, 2, 32)) + chunk("data", std::string(16, 'x')))).sample,
      WavSample::kFloat32);
  const std::string wave =
      riff(chunk("fmt ", format(1, 2, 16, true), true) + chunk("data", "\1\2\3\4", true), "RIFX");
  const WavHeader header = parse(wave);
  EXPECT_EQ(header.channels, 2U);
  EXPECT_EQ(header.rate_hz, 8000U);
  EXPECT_EQ(decoded(header, wave, 4), "\2\1\4\3");
}

TEST(Wav, LongWavesHaveTheirSizeInAChunkOfItsOwn) {
  const std::string sizes = number(0, 8) + number(4, 8) + number(2, 8) + number(0, 4);
  const std::string wave = riff(chunk("ds64", sizes) + chunk("fmt ", format(1, 1, 16)) + "data" +
                                    number(0xFFFFFFFF, 4) + "abcdrest",
                                "RF64");
  const WavHeader header = parse(wave);
  EXPECT_EQ(header.frames, 2U);
  EXPECT_FALSE(header.unbounded);
}

TEST(Wav, ExtensibleFormatsSayWhatTheyAre) {
  const auto extensible = [](const std::string& tail) {
    return riff(chunk("fmt ", format(0xFFFE, 1, 16) + number(22, 2) + number(16, 2) + number(4, 4) +
                                  number(1, 2) + tail) +
                chunk("data", "ab"));
  };
  const std::string guid = "\0\0\0\0\x10\0\x80\0\0\xAA\0\x38\x9B\x71"s;
  EXPECT_EQ(parse(extensible(guid)).frames, 1U);
  EXPECT_THROW(parse(extensible(std::string(14, 'x'))), Error);
}

TEST(Wav, ChunksOfOddSizeArePadded) {
  const WavHeader header =
      parse(riff(chunk("LIST", "abc") + chunk("fmt ", format(1, 1, 16)) + chunk("data", "abcd")));
  EXPECT_EQ(header.frames, 2U);
  EXPECT_EQ(header.data_offset, 12U + 12 + 24 + 8);
}

TEST(Wav, StreamsReachToTheEnd) {
  for (const std::uint64_t size : {0xFFFFFFFFU, 0x7FFFFFFFU, 0x7FFFF000U}) {
    const WavHeader header =
        parse(riff(chunk("fmt ", format(1, 1, 16)) + "data" + number(size, 4) + "abcdef"));
    EXPECT_TRUE(header.unbounded) << size;
    EXPECT_EQ(header.frames, 3U) << size;
  }
  const WavHeader cut =
      parse(riff(chunk("fmt ", format(1, 1, 16)) + "data" + number(100, 4) + "abcdef"));
  EXPECT_TRUE(cut.truncated);
  EXPECT_EQ(cut.frames, 3U);
}

TEST(Wav, WhatIsNoPcmIsRefused) {
  EXPECT_THROW(parse(riff(chunk("fmt ", format(6, 1, 8)) + chunk("data", "ab"))), Error);
  EXPECT_THROW(parse(riff(chunk("fmt ", format(1, 0, 16)) + chunk("data", "ab"))), Error);
  EXPECT_THROW(parse(riff(chunk("data", "ab") + chunk("fmt ", format(1, 1, 16)))), Error);
}

}  // namespace

}  // namespace npyfs
