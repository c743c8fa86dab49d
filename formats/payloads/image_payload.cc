// SPDX-License-Identifier: Apache-2.0
//
// Images as array items: uint8 [height, width, channels].

#include <fmt/format.h>

#include "formats/extents.h"
#include "formats/payloads/image.h"
#include "formats/payloads/inspected_column.h"
#include "formats/payloads/payload.h"

namespace npyfs {

namespace {

// Most jpegs have their size among these; metadata before it is stepped over.
constexpr std::size_t kWindowNbytes = 512;

class ImageColumn : public InspectedColumn {
 public:
  ImageColumn(std::shared_ptr<const ByteColumn> bytes, const std::optional<ImageSize>& size,
              bool named)
      : InspectedColumn(std::move(bytes)),
        image_size_(size),
        named_(named),
        images_(InspectedColumn::size()) {}

  void look(const PayloadField& field) { look_at_all(field, kWindowNbytes); }

  bool decoded(std::uint64_t /*record*/) const override { return true; }
  void plan(std::uint64_t /*record*/, ByteRange /*range*/, Plan& /*plan*/) const override {}

  void decode(std::uint64_t record, std::span<std::byte> out,
              DecodeContext& context) const override {
    const ImageInfo& info = images_[record];
    const std::vector<std::byte> stored = read_whole(record, context);
    try {
      if (!image_size_) {
        decode_image(info, stored, out);
        return;
      }
      std::vector<std::byte> pixels(info.nbytes());
      decode_image(info, stored, pixels);
      fit_image(info, pixels, *image_size_, out);
    } catch (const Error& error) {
      throw error.kind() == ErrorKind::kCorrupt ? fault(record, error.what()) : error;
    }
  }

 protected:
  void look_at(std::uint64_t record, PayloadBytes& payload) override {
    const auto codec = find_image_codec(payload.at_most(0, kMagicNbytes));
    if (!codec) {
      // Where a name says that it is an image it is damaged; else it is something else.
      const Error error = payload.fault(0, "the payload is no image, expected jpeg, png or webp");
      throw named_ ? error : Error(ErrorKind::kUnsupported, error.what());
    }
    require_readable(payload);
    images_[record] = parse_image_header(*codec, payload);
  }
  bool alike(std::uint64_t a, std::uint64_t b) const override {
    return images_[a].height == images_[b].height && images_[a].width == images_[b].width &&
           images_[a].channels == images_[b].channels;
  }
  // Images of several sizes are no array, be they only of several heights.
  bool one_array(std::uint64_t a, std::uint64_t b) const override {
    return channels(a) == channels(b) && (image_size_ || images_[a].width == images_[b].width);
  }
  void describe(std::uint64_t record, Item& item) const override {
    item.dtype = dtype_;
    const ImageInfo& info = images_[record];
    item.shape.assign({image_size_ ? image_size_->height : info.height,
                       image_size_ ? image_size_->width : info.width, channels(record)});
  }

 private:
  std::uint64_t channels(std::uint64_t record) const {
    return image_size_ && image_size_->channels ? *image_size_->channels : images_[record].channels;
  }

  std::optional<ImageSize> image_size_;
  bool named_;
  std::vector<ImageInfo> images_;
  DType dtype_ = DType::simple("|u1");
};

}  // namespace

std::shared_ptr<const Column> make_image_column(const PayloadField& field) {
  auto column = std::make_shared<ImageColumn>(field.bytes, field.image, field.named);
  column->look(field);
  return column;
}

}  // namespace npyfs
