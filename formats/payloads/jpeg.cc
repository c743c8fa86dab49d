// SPDX-License-Identifier: Apache-2.0
//
// libjpeg-turbo with its defaults: the accurate integer transform, smooth upsampling. What it warns
// of (an early end, a bad code, bytes between segments) are pixels it has made up.

#include <csetjmp>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

// After <cstdio>, which it needs and does not include.
#include <jpeglib.h>

#include "formats/bytes/error.h"
#include "formats/payloads/image_codecs.h"

namespace npyfs {

namespace {

// Every scan of a progressive picture costs a pass over it; a hostile one has thousands.
constexpr int kMostScans = 100;

struct JpegErrors {
  jpeg_error_mgr base;  // first: libjpeg hands out a pointer to it
  jmp_buf jump;
  char text[JMSG_LENGTH_MAX];
};

[[noreturn]] void fail(j_common_ptr jpeg) {
  auto* const errors = reinterpret_cast<JpegErrors*>(jpeg->err);
  errors->base.format_message(jpeg, errors->text);
  longjmp(errors->jump, 1);
}

void note_message(j_common_ptr jpeg, int level) {
  if (level < 0) {
    fail(jpeg);
  }
}

void limit_scans(j_common_ptr jpeg) {
  const auto* const decompress = reinterpret_cast<j_decompress_ptr>(jpeg);
  if (decompress->input_scan_number > kMostScans) {
    auto* const errors = reinterpret_cast<JpegErrors*>(jpeg->err);
    std::snprintf(errors->text, sizeof errors->text, "more than %d scans", kMostScans);
    longjmp(errors->jump, 1);
  }
}

struct JpegDecoder {
  jpeg_decompress_struct jpeg;
  JpegErrors errors;
  jpeg_progress_mgr progress;
};

// Adobe's convention, which all writers follow: the four inks are stored inverted.
void cmyk_to_rgb(const std::uint8_t* in, std::uint8_t* out, std::uint32_t width) {
  const auto scale = [](unsigned ink, unsigned black) {
    const unsigned product = ink * black + 128;
    return static_cast<std::uint8_t>((product + (product >> 8)) >> 8);  // rounded division by 255
  };
  for (std::uint32_t x = 0; x < width; ++x) {
    for (unsigned c = 0; c < 3; ++c) {
      out[3 * x + c] = scale(in[4 * x + c], in[4 * x + 3]);
    }
  }
}

// False with errors.text set. Nothing in here has a destructor: errors jump out of it. `row` has
// room for a row of four inks.
bool run(JpegDecoder& decoder, const ImageInfo& info, std::span<const std::byte> stored,
         std::uint8_t* out, std::uint8_t* row) {
  jpeg_decompress_struct& jpeg = decoder.jpeg;
  if (setjmp(decoder.errors.jump) != 0) {  // NOLINT: the library's way
    jpeg_destroy_decompress(&jpeg);
    return false;
  }
  jpeg_create_decompress(&jpeg);
  jpeg.progress = &decoder.progress;
  jpeg_mem_src(&jpeg, reinterpret_cast<const unsigned char*>(stored.data()), stored.size());
  jpeg_read_header(&jpeg, TRUE);
  const bool inks = jpeg.num_components == 4;
  const int channels = jpeg.num_components == 1 ? 1 : 3;
  // Before it allocates: the file may have changed since its header was looked at.
  if (jpeg.image_width != info.width || jpeg.image_height != info.height ||
      channels != info.channels) {
    std::snprintf(decoder.errors.text, sizeof decoder.errors.text,
                  "it is %u x %u pixels of %d components, expected %u x %u of %d channels",
                  jpeg.image_height, jpeg.image_width, jpeg.num_components, info.height, info.width,
                  int{info.channels});
    jpeg_destroy_decompress(&jpeg);
    return false;
  }
  jpeg.out_color_space = inks ? JCS_CMYK : channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_start_decompress(&jpeg);
  if (jpeg.output_width != info.width || jpeg.output_height != info.height ||
      jpeg.output_components != (inks ? 4 : channels)) {
    std::snprintf(decoder.errors.text, sizeof decoder.errors.text,
                  "it is decoded to %u x %u pixels of %d components", jpeg.output_height,
                  jpeg.output_width, jpeg.output_components);
    jpeg_destroy_decompress(&jpeg);
    return false;
  }
  const std::size_t stride = std::size_t{info.width} * info.channels;
  while (jpeg.output_scanline < jpeg.output_height) {
    std::uint8_t* const to = out + jpeg.output_scanline * stride;
    JSAMPROW rows[] = {inks ? row : to};
    jpeg_read_scanlines(&jpeg, rows, 1);
    if (inks) {
      cmyk_to_rgb(row, to, info.width);
    }
  }
  jpeg_finish_decompress(&jpeg);
  jpeg_destroy_decompress(&jpeg);
  return true;
}

}  // namespace

void decode_jpeg(const ImageInfo& info, std::span<const std::byte> stored,
                 std::span<std::byte> out) {
  JpegDecoder decoder;
  std::memset(&decoder, 0, sizeof decoder);
  decoder.jpeg.err = jpeg_std_error(&decoder.errors.base);
  decoder.errors.base.error_exit = fail;
  decoder.errors.base.emit_message = note_message;
  decoder.progress.progress_monitor = limit_scans;
  std::vector<std::uint8_t> row(std::size_t{4} * info.width);
  if (!run(decoder, info, stored, reinterpret_cast<std::uint8_t*>(out.data()), row.data())) {
    throw Error(ErrorKind::kCorrupt,
                std::string("the jpeg is damaged: ") + printable(decoder.errors.text));
  }
}

}  // namespace npyfs
