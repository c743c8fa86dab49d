// SPDX-License-Identifier: Apache-2.0

#include "formats/payloads/wav.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>

#include "formats/bytes/byte_range.h"
#include "formats/bytes/endian.h"
#include "formats/bytes/error.h"

namespace npyfs {

namespace {

constexpr std::uint32_t kUnknown = 0xFFFFFFFF;
// Sizes that writers to a pipe leave behind (FFmpeg; SoX).
constexpr std::uint32_t kStreamSizes[] = {kUnknown, 0x7FFFFFFF, 0x7FFFF000};
// What follows the tag in the GUID of an extensible format.
constexpr unsigned char kGuidTail[14] = {0, 0, 0,    0, 0x10, 0,    0x80,
                                         0, 0, 0xAA, 0, 0x38, 0x9B, 0x71};
// A header with more chunks before its samples than this is none.
constexpr int kMostChunks = 4096;

class WavParser {
 public:
  explicit WavParser(PayloadBytes& payload) : payload_(payload), avail_(payload.nbytes()) {}

  WavHeader parse() {
    read_riff();
    std::uint64_t at = 12;
    for (int i = 0; i < kMostChunks; ++i) {
      const std::string id = tag(at);
      const std::uint64_t nbytes = u32(at + 4);
      at += 8;
      if (id == "data") {
        finish(at, nbytes);
        return header_;
      }
      if (nbytes > avail_ - at) {
        throw fault(at - 4, fmt::format("the size of chunk '{}' is {}, expected at most {} as the "
                                        "wave ends there",
                                        printable(id), nbytes, avail_ - at));
      }
      if (id == "fmt ") {
        read_format(at, nbytes);
      } else if (id == "ds64" && nbytes >= 16) {
        long_nbytes_ = u64(at + 8);
      }
      at += nbytes + (nbytes & 1);
    }
    throw fault(at, fmt::format("no 'data' among the first {} chunks", kMostChunks));
  }

 private:
  Error fault(std::uint64_t at, const std::string& text) const {
    return payload_.fault(at, text + "; the wave is damaged");
  }
  Error unsupported(std::uint64_t at, const std::string& text) const {
    return {ErrorKind::kUnsupported, payload_.fault(at, text).what()};
  }

  const std::byte* bytes(std::uint64_t at, std::size_t nbytes) {
    if (!lies_within(at, nbytes, avail_)) {
      throw fault(at, fmt::format("the header needs {} bytes, expected at most {} as the wave ends "
                                  "there",
                                  nbytes, at < avail_ ? avail_ - at : 0));
    }
    return payload_.at(at, nbytes).data();
  }
  std::string tag(std::uint64_t at) { return {reinterpret_cast<const char*>(bytes(at, 4)), 4}; }
  std::uint16_t u16(std::uint64_t at) {
    return load<std::uint16_t>(bytes(at, 2), header_.big_endian);
  }
  std::uint32_t u32(std::uint64_t at) {
    return load<std::uint32_t>(bytes(at, 4), header_.big_endian);
  }
  std::uint64_t u64(std::uint64_t at) { return load_le<std::uint64_t>(bytes(at, 8)); }

  void read_riff() {
    const std::string riff = tag(0);
    header_.big_endian = riff == "RIFX";
    is_long_ = riff == "RF64" || riff == "BW64";
    if ((riff != "RIFF" && !header_.big_endian && !is_long_) || tag(8) != "WAVE") {
      throw fault(0, fmt::format("the magic is '{}', expected RIFF, RIFX or RF64 and WAVE",
                                 printable(riff)));
    }
    riff_nbytes_ = u32(4);
  }

  void read_format(std::uint64_t at, std::uint64_t nbytes) {
    if (nbytes < 16) {
      throw fault(at - 4,
                  fmt::format("the size of chunk 'fmt ' is {}, expected 16 or more", nbytes));
    }
    std::uint16_t code = u16(at);
    header_.channels = u16(at + 2);
    header_.rate_hz = u32(at + 4);
    header_.frame_nbytes = u16(at + 12);
    const std::uint16_t bits = u16(at + 14);
    if (code == 0xFFFE) {
      code = extensible_code(at, nbytes);
    }
    if (header_.channels == 0 || header_.rate_hz == 0) {
      throw fault(at, fmt::format("channels and rate are {} and {}, expected 1 or more",
                                  header_.channels, header_.rate_hz));
    }
    const std::uint32_t width = (bits + 7U) / 8;
    const std::optional<WavSample> sample = sample_of(code, width);
    if (!sample) {
      throw unsupported(at, fmt::format("the wave's format is {:#06x} with {} bits, expected PCM "
                                        "(1) of 8 to 32 bits or float (3)",
                                        code, bits));
    }
    if (width * header_.channels != header_.frame_nbytes) {
      throw fault(at + 12, fmt::format("the size of a frame is {}, expected {} for {} channels of "
                                       "{} bits",
                                       header_.frame_nbytes, width * header_.channels,
                                       header_.channels, bits));
    }
    header_.sample = *sample;
  }

  std::uint16_t extensible_code(std::uint64_t at, std::uint64_t nbytes) {
    if (nbytes < 40 || std::memcmp(bytes(at + 26, 14), kGuidTail, sizeof kGuidTail) != 0) {
      throw unsupported(at,
                        "the wave's format is extensible with an unknown GUID, expected that of "
                        "PCM or float");
    }
    return u16(at + 24);
  }

  static std::optional<WavSample> sample_of(std::uint16_t code, std::uint32_t width) {
    if (code == 1) {
      switch (width) {
        case 1:
          return WavSample::kUint8;
        case 2:
          return WavSample::kInt16;
        case 3:
          return WavSample::kInt24;
        case 4:
          return WavSample::kInt32;
        default:
          return std::nullopt;
      }
    }
    if (code == 3 && (width == 4 || width == 8)) {
      return width == 4 ? WavSample::kFloat32 : WavSample::kFloat64;
    }
    return std::nullopt;
  }

  void finish(std::uint64_t at, std::uint64_t nbytes) {
    if (header_.channels == 0) {
      throw fault(at, "chunk 'data' comes before 'fmt ', expected it behind");
    }
    const std::uint64_t left = avail_ - at;
    if (is_long_ && nbytes == kUnknown && long_nbytes_) {
      nbytes = *long_nbytes_;
    } else {
      const bool placeholder = std::find(std::begin(kStreamSizes), std::end(kStreamSizes),
                                         nbytes) != std::end(kStreamSizes);
      header_.unbounded =
          placeholder || (nbytes == 0 && (riff_nbytes_ == 0 || riff_nbytes_ == kUnknown));
    }
    header_.truncated = !header_.unbounded && nbytes > left;
    header_.data_offset = at;
    header_.riff_nbytes =
        is_long_ || riff_nbytes_ == kUnknown ? 0 : std::uint64_t{riff_nbytes_} + 8;
    header_.frames = (header_.unbounded ? left : std::min(nbytes, left)) / header_.frame_nbytes;
  }

  PayloadBytes& payload_;
  std::uint64_t avail_;
  WavHeader header_;
  bool is_long_ = false;
  std::uint32_t riff_nbytes_ = 0;
  std::optional<std::uint64_t> long_nbytes_;  // of ds64
};

}  // namespace

bool is_wav(std::span<const std::byte> head) {
  if (head.size() < 12) {
    return false;
  }
  const std::string_view text(reinterpret_cast<const char*>(head.data()), 12);
  return (text.starts_with("RIFF") || text.starts_with("RIFX") || text.starts_with("RF64") ||
          text.starts_with("BW64")) &&
         text.ends_with("WAVE");
}

WavHeader parse_wav(PayloadBytes& payload) { return WavParser(payload).parse(); }

WavHeader parse_wav(const ByteSource& source, WindowReader& window, std::uint64_t offset,
                    std::uint64_t avail) {
  SourceBytes payload(source, window, offset, avail);
  return parse_wav(payload);
}

DType wav_dtype(WavSample sample) {
  switch (sample) {
    case WavSample::kUint8:
      return DType::simple("|u1");
    case WavSample::kInt16:
      return DType::simple("<i2");
    case WavSample::kInt24:
    case WavSample::kInt32:
      return DType::simple("<i4");
    case WavSample::kFloat32:
      return DType::simple("<f4");
    case WavSample::kFloat64:
      break;
  }
  return DType::simple("<f8");
}

std::uint32_t wav_sample_nbytes(WavSample sample) {
  return sample == WavSample::kInt24 ? 3 : wav_dtype(sample).itemsize;
}

bool wav_needs_decoding(WavSample sample, bool big_endian) {
  return sample == WavSample::kInt24 || (big_endian && sample != WavSample::kUint8);
}

void decode_wav(WavSample sample, bool big_endian, std::span<const std::byte> stored,
                std::span<std::byte> out) {
  const std::size_t from = wav_sample_nbytes(sample);
  const std::size_t to = wav_dtype(sample).itemsize;
  // What a 24-bit sample lacks are its lowest bits.
  for (std::size_t i = 0; i < out.size() / to; ++i) {
    std::byte* const element = out.data() + i * to;
    std::memset(element, 0, to - from);
    std::memcpy(element + (to - from), stored.data() + i * from, from);
    if (big_endian) {
      std::reverse(element + (to - from), element + to);
    }
  }
}

}  // namespace npyfs
