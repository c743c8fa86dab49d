// SPDX-License-Identifier: Apache-2.0
//
// numcodecs: numcodecs/packbits.py. One byte with the number of bits that pad the last byte, then
// eight booleans a byte, the first in the highest bit.

#include <fmt/format.h>

#include "formats/bytes/codecs/codecs.h"

namespace npyfs {

namespace {

class Packbits : public Codec {
 public:
  Packbits() : Codec("packbits") {}

  std::optional<std::size_t> decode(std::span<const std::byte> in,
                                    std::span<std::byte> out) const override {
    const std::size_t room = in.empty() ? 0 : (in.size() - 1) * 8;
    const std::size_t padding = in.empty() ? 0 : std::to_integer<std::size_t>(in[0]);
    if (in.empty() || padding > 7 || padding > room) {
      throw damaged(fmt::format("padding is {} bits of {}, expected 0 to 7", padding, room));
    }
    const std::size_t count = room - padding;
    if (count > out.size()) {
      return std::nullopt;
    }
    for (std::size_t i = 0; i < count; ++i) {
      out[i] = in[1 + i / 8] >> (7 - i % 8) & std::byte{1};
    }
    return count;
  }

  std::optional<std::uint64_t> encoded_nbytes(std::uint64_t decoded_nbytes) const override {
    return 1 + decoded_nbytes / 8 + (decoded_nbytes % 8 != 0 ? 1 : 0);
  }
};

}  // namespace

CodecPtr make_packbits() { return std::make_unique<Packbits>(); }

}  // namespace npyfs
