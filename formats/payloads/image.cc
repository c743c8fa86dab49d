// SPDX-License-Identifier: Apache-2.0
//
// Headers, and what is done with pixels once they are there.
// [ITU T.81 B.2; W3C PNG 11.2.2; RFC 9649 (webp), RFC 6386 9.1 (VP8)]

#include "formats/payloads/image.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "formats/bytes/crc.h"
#include "formats/bytes/text_view.h"
#include "formats/payloads/image_codecs.h"

namespace npyfs {

namespace {

// What a flat image can be compressed to, with room: a jpeg spends at least one bit on a block of
// 64 pixels; deflate a byte on 1032, and a byte of a png may be 8 pixels of a palette, 24 bytes.
constexpr std::uint64_t kMostNbytesPerByte = 2048;
constexpr std::uint64_t kMostPngNbytesPerByte = 32768;
constexpr std::uint64_t kAlwaysAllowedNbytes = std::uint64_t{64} << 20;
// An image is decoded whole.
constexpr std::uint64_t kMostNbytes = std::uint64_t{1} << 30;
// More segments before its frame than this has no jpeg.
constexpr int kMostSegments = 4096;

std::uint32_t le24(const std::byte* bytes) {
  return load_le<std::uint16_t>(bytes) | static_cast<std::uint32_t>(bytes[2]) << 16;
}

bool is_frame(std::uint8_t marker) {
  return marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc;
}

// Walks from marker to marker up to the frame's.
ImageInfo parse_jpeg(PayloadBytes& payload) {
  std::uint64_t at = 2;
  for (int i = 0; i < kMostSegments; ++i) {
    const auto head = payload.at(at, 4);
    const auto marker = static_cast<std::uint8_t>(head[1]);
    if (head[0] != std::byte{0xff}) {
      throw payload.fault(at,
                          fmt::format("the byte of a marker is {:#04x}, expected 0xff; the jpeg "
                                      "is damaged",
                                      static_cast<unsigned>(head[0])));
    }
    if (marker == 0xff) {  // fill
      ++at;
      continue;
    }
    if (marker == 0x01 || (marker >= 0xd0 && marker <= 0xd8)) {  // alone
      at += 2;
      continue;
    }
    if (marker == 0xd9 || marker == 0xda) {
      throw payload.fault(at,
                          "the picture begins or ends, expected its size (SOF) before; the jpeg "
                          "is damaged");
    }
    if (is_frame(marker)) {
      const auto frame = payload.at(at + 4, 6);
      ImageInfo info{ImageCodec::kJpeg, 0, load_be<std::uint16_t>(&frame[1]),
                     load_be<std::uint16_t>(&frame[3])};
      const auto components = static_cast<unsigned>(frame[5]);
      if (frame[0] != std::byte{8} || (components != 1 && components != 3 && components != 4)) {
        throw payload.fault(at + 4,
                            fmt::format("the jpeg has {} components of {} bits, expected 1, "
                                        "3 or 4 of 8",
                                        components, static_cast<unsigned>(frame[0])));
      }
      // CMYK is made RGB.
      info.channels = components == 1 ? 1 : 3;
      return info;
    }
    at += 2 + std::max<std::uint64_t>(2, load_be<std::uint16_t>(&head[2]));
  }
  throw payload.fault(at, fmt::format("no frame (SOF) among the first {} segments; the jpeg is "
                                      "damaged",
                                      kMostSegments));
}

ImageInfo parse_png(PayloadBytes& payload) {
  const auto head = payload.at(8, 4 + 4 + 13 + 4);
  if (load_be<std::uint32_t>(head.data()) != 13 || as_text(head).substr(4, 4) != "IHDR") {
    throw payload.fault(8, "the first chunk is not IHDR of 13 bytes; the png is damaged");
  }
  // A flipped bit of the size would be said of all images.
  const std::uint32_t stored = load_be<std::uint32_t>(&head[21]);
  const std::uint32_t found = crc32(head.subspan(4, 4 + 13));
  if (found != stored) {
    throw payload.fault(29, fmt::format("the checksum of IHDR is {:#010x}, expected {:#010x}; the "
                                        "png is damaged",
                                        stored, found));
  }
  ImageInfo info{ImageCodec::kPng, 0, load_be<std::uint32_t>(&head[12]),
                 load_be<std::uint32_t>(&head[8])};
  const auto color = static_cast<unsigned>(head[17]);
  switch (color) {
    case 0:
      info.channels = 1;
      break;
    case 4:
      info.channels = 2;
      break;
    case 2:
    case 3:  // a palette, of RGB
      info.channels = 3;
      break;
    case 6:
      info.channels = 4;
      break;
    default:
      throw payload.fault(25,
                          fmt::format("the colour type is {}, expected 0, 2, 3, 4 or 6; the png "
                                      "is damaged",
                                      color));
  }
  return info;
}

ImageInfo parse_webp(PayloadBytes& payload) {
  const auto head = payload.at(12, 18);
  const std::string_view form = as_text(head).substr(0, 4);
  ImageInfo info{ImageCodec::kWebp, 3, 0, 0};
  if (form == "VP8 ") {
    if (load_le<std::uint16_t>(&head[11]) != 0x019d || head[13] != std::byte{0x2a}) {
      throw payload.fault(23, "the start code of the VP8 frame is missing; the webp is damaged");
    }
    info.width = load_le<std::uint16_t>(&head[14]) & 0x3fff;
    info.height = load_le<std::uint16_t>(&head[16]) & 0x3fff;
  } else if (form == "VP8L") {
    if (head[8] != std::byte{0x2f}) {
      throw payload.fault(20, "the signature of VP8L is missing; the webp is damaged");
    }
    const auto bits = load_le<std::uint32_t>(&head[9]);
    info.width = (bits & 0x3fff) + 1;
    info.height = (bits >> 14 & 0x3fff) + 1;
    info.channels = (bits >> 28 & 1) != 0 ? 4 : 3;
  } else if (form == "VP8X") {
    if ((head[8] & std::byte{0x02}) != std::byte{0}) {
      throw payload.fault(20, "the webp is animated, expected one picture");
    }
    info.width = le24(&head[12]) + 1;
    info.height = le24(&head[15]) + 1;
    info.channels = (head[8] & std::byte{0x10}) != std::byte{0} ? 4 : 3;
  } else {
    throw payload.fault(12, fmt::format("the first chunk is '{}', expected VP8, VP8L or VP8X; the "
                                        "webp is damaged",
                                        printable(form)));
  }
  return info;
}

void require_plausible(const ImageInfo& info, PayloadBytes& payload) {
  if (info.height == 0 || info.width == 0) {
    throw payload.fault(0, fmt::format("the image is {} x {} pixels, expected at least one; it is "
                                       "damaged",
                                       info.height, info.width));
  }
  const std::uint64_t per_byte =
      info.codec == ImageCodec::kPng ? kMostPngNbytesPerByte : kMostNbytesPerByte;
  const std::uint64_t most = std::min(
      kMostNbytes, kAlwaysAllowedNbytes + std::min(payload.nbytes(), kMostNbytes) * per_byte);
  // The sides first: their product may not fit.
  if (info.height > most || info.width > most || info.nbytes() > most) {
    throw payload.fault(0, fmt::format("the image is {} x {} pixels, expected at most {} bytes of "
                                       "them in {} bytes of file",
                                       info.height, info.width, most, payload.nbytes()));
  }
}

// One pixel made of another number of channels.
void convert_pixel(const std::uint8_t* in, unsigned from, std::uint8_t* out, unsigned to) {
  const bool grey = from < 3;
  const std::uint8_t red = in[0];
  const std::uint8_t green = grey ? in[0] : in[1];
  const std::uint8_t blue = grey ? in[0] : in[2];
  if (to == 1) {
    // ITU-R 601, as the usual libraries have it.
    out[0] =
        grey ? red : static_cast<std::uint8_t>((299 * red + 587 * green + 114 * blue + 500) / 1000);
    return;
  }
  out[0] = red;
  out[1] = green;
  out[2] = blue;
  if (to == 4) {
    out[3] = from == 2 ? in[1] : from == 4 ? in[3] : 255;
  }
}

// Where a pixel of the result lies between two of the source.
struct Tap {
  std::uint32_t low = 0;
  std::uint32_t high = 0;
  float weight = 0;  // of `high`
};

// For `count` pixels from the centre of what `from` pixels resized to `to` are.
std::vector<Tap> make_taps(std::uint32_t from, std::uint64_t to, std::uint32_t count) {
  std::vector<Tap> taps(count);
  const std::uint64_t skip = (to - count) / 2;
  const double scale = static_cast<double>(from) / static_cast<double>(to);
  for (std::uint32_t i = 0; i < count; ++i) {
    const double at = std::clamp((static_cast<double>(i + skip) + 0.5) * scale - 0.5, 0.0,
                                 static_cast<double>(from - 1));
    taps[i].low = static_cast<std::uint32_t>(at);
    taps[i].high = std::min(taps[i].low + 1, from - 1);
    taps[i].weight = static_cast<float>(at - taps[i].low);
  }
  return taps;
}

}  // namespace

std::optional<ImageCodec> find_image_codec(std::span<const std::byte> head) {
  const std::string_view text = as_text(head);
  if (text.starts_with("\xff\xd8\xff")) {
    return ImageCodec::kJpeg;
  }
  if (text.starts_with("\x89PNG\r\n\x1a\n")) {
    return ImageCodec::kPng;
  }
  if (text.starts_with("RIFF") && text.size() >= 12 && text.substr(8, 4) == "WEBP") {
    return ImageCodec::kWebp;
  }
  return std::nullopt;
}

ImageInfo parse_image_header(ImageCodec codec, PayloadBytes& payload) {
  ImageInfo info;
  switch (codec) {
    case ImageCodec::kJpeg:
      info = parse_jpeg(payload);
      break;
    case ImageCodec::kPng:
      info = parse_png(payload);
      break;
    case ImageCodec::kWebp:
      info = parse_webp(payload);
      break;
  }
  require_plausible(info, payload);
  return info;
}

void decode_image(const ImageInfo& info, std::span<const std::byte> stored,
                  std::span<std::byte> out) {
  switch (info.codec) {
    case ImageCodec::kJpeg:
      decode_jpeg(info, stored, out);
      break;
    case ImageCodec::kPng:
      decode_png(info, stored, out);
      break;
    case ImageCodec::kWebp:
      decode_webp(info, stored, out);
      break;
  }
}

void fit_image(const ImageInfo& info, std::span<const std::byte> pixels, const ImageSize& size,
               std::span<std::byte> out) {
  // The edge that is shorter, compared with what is asked for, becomes what is asked for; the other
  // one follows, rounded down.
  const bool tall =
      std::uint64_t{info.height} * size.width >= std::uint64_t{info.width} * size.height;
  const std::uint64_t height =
      tall ? std::uint64_t{info.height} * size.width / info.width : size.height;
  const std::uint64_t width =
      tall ? size.width : std::uint64_t{info.width} * size.height / info.height;
  const std::vector<Tap> rows = make_taps(info.height, height, size.height);
  const std::vector<Tap> columns = make_taps(info.width, width, size.width);
  const unsigned channels = info.channels;
  const unsigned wanted = size.channels.value_or(info.channels);
  const auto* const in = reinterpret_cast<const std::uint8_t*>(pixels.data());
  auto* to = reinterpret_cast<std::uint8_t*>(out.data());
  const std::uint64_t stride = std::uint64_t{info.width} * channels;
  std::uint8_t pixel[4] = {};
  for (const Tap& row : rows) {
    const std::uint8_t* const above = in + row.low * stride;
    const std::uint8_t* const below = in + row.high * stride;
    for (const Tap& column : columns) {
      const std::uint64_t left = std::uint64_t{column.low} * channels;
      const std::uint64_t right = std::uint64_t{column.high} * channels;
      for (unsigned c = 0; c < channels; ++c) {
        const float top = static_cast<float>(above[left + c]) * (1 - column.weight) +
                          static_cast<float>(above[right + c]) * column.weight;
        const float bottom = static_cast<float>(below[left + c]) * (1 - column.weight) +
                             static_cast<float>(below[right + c]) * column.weight;
        pixel[c] = static_cast<std::uint8_t>(top * (1 - row.weight) + bottom * row.weight + 0.5F);
      }
      if (wanted == channels) {
        std::copy_n(pixel, channels, to);
      } else {
        convert_pixel(pixel, channels, to, wanted);
      }
      to += wanted;
    }
  }
}

}  // namespace npyfs
