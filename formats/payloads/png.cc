// SPDX-License-Identifier: Apache-2.0
//
// libpng: 16 bits are cut to the upper 8, a palette and fewer than 8 bits are spread out, a
// transparent colour (tRNS) and gamma are left alone.

#include <png.h>

#include <csetjmp>
#include <cstring>
#include <string>
#include <vector>

#include "formats/bytes/error.h"
#include "formats/payloads/image_codecs.h"

namespace npyfs {

namespace {

struct PngInput {
  std::span<const std::byte> left;
  char text[128];
};

void read_bytes(png_structp png, png_bytep out, std::size_t nbytes) {
  auto* const input = static_cast<PngInput*>(png_get_io_ptr(png));
  if (input->left.size() < nbytes) {
    png_error(png, "it ends early");
  }
  std::memcpy(out, input->left.data(), nbytes);
  input->left = input->left.subspan(nbytes);
}

[[noreturn]] void note_error(png_structp png, png_const_charp text) {
  auto* const input = static_cast<PngInput*>(png_get_error_ptr(png));
  std::strncpy(input->text, text, sizeof input->text - 1);
  png_longjmp(png, 1);
}

// What libpng can go on after does not touch the pixels: it refuses chunks of pixels whose checksum
// does not match.
void ignore_warning(png_structp /*png*/, png_const_charp /*text*/) {}

// False with input.text set. Nothing in here has a destructor: errors jump out of it. `rows` has
// room for info.height pointers.
bool run(png_structp png, png_infop header, PngInput& input, const ImageInfo& info,
         std::uint8_t* out, png_bytep* rows) {
  if (setjmp(png_jmpbuf(png)) != 0) {  // NOLINT: the library's way
    return false;
  }
  png_set_read_fn(png, &input, read_bytes);
  png_set_user_limits(png, info.width, info.height);
  png_read_info(png, header);
  const int color = png_get_color_type(png, header);
  png_set_strip_16(png);
  if (color == PNG_COLOR_TYPE_PALETTE) {
    png_set_palette_to_rgb(png);
    png_set_strip_alpha(png);
  } else if (color == PNG_COLOR_TYPE_GRAY) {
    png_set_expand_gray_1_2_4_to_8(png);
  }
  png_set_interlace_handling(png);
  png_read_update_info(png, header);
  const std::size_t stride = std::size_t{info.width} * info.channels;
  if (png_get_image_width(png, header) != info.width ||
      png_get_image_height(png, header) != info.height || png_get_rowbytes(png, header) != stride) {
    png_error(png, "its size is not what its header says");
  }
  for (std::uint32_t y = 0; y < info.height; ++y) {
    rows[y] = out + y * stride;
  }
  png_read_image(png, rows);
  png_read_end(png, nullptr);
  return true;
}

}  // namespace

void decode_png(const ImageInfo& info, std::span<const std::byte> stored,
                std::span<std::byte> out) {
  PngInput input{stored, {}};
  std::vector<png_bytep> rows(info.height);
  png_structp png =
      png_create_read_struct(PNG_LIBPNG_VER_STRING, &input, note_error, ignore_warning);
  png_infop header = png != nullptr ? png_create_info_struct(png) : nullptr;
  const bool whole =
      header != nullptr &&
      run(png, header, input, info, reinterpret_cast<std::uint8_t*>(out.data()), rows.data());
  png_destroy_read_struct(&png, &header, nullptr);
  if (!whole) {
    throw Error(ErrorKind::kCorrupt,
                std::string("the png is damaged: ") +
                    printable(input.text[0] != '\0' ? input.text : "no memory for it"));
  }
}

}  // namespace npyfs
