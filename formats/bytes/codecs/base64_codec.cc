// SPDX-License-Identifier: Apache-2.0
//
// numcodecs: numcodecs/base64.py.

#include <vector>

#include "formats/bytes/base64.h"
#include "formats/bytes/codecs/codecs.h"

namespace npyfs {

namespace {

class Base64 : public Codec {
 public:
  Base64() : Codec("base64") {}

  std::optional<std::size_t> decode(std::span<const std::byte> in,
                                    std::span<std::byte> out) const override {
    const std::string_view text(reinterpret_cast<const char*>(in.data()), in.size());
    const auto padding = text.size() - std::min(text.find_last_not_of('=') + 1, text.size());
    const std::size_t most = text.size() / 4 * 3;
    if (most > out.size() + padding) {
      return std::nullopt;
    }
    const auto made = decode_base64(text, out);
    if (!made) {
      throw damaged("the text is not base64");
    }
    return *made;
  }

  std::optional<std::uint64_t> encoded_nbytes(std::uint64_t decoded_nbytes) const override {
    return (decoded_nbytes + 2) / 3 * 4;
  }
};

}  // namespace

CodecPtr make_base64() { return std::make_unique<Base64>(); }

}  // namespace npyfs
