// SPDX-License-Identifier: Apache-2.0
//
// Numbers stored in the other byte order (zarr 3's `bytes` codec with endian "big").

#include <fmt/format.h>

#include <algorithm>

#include "formats/bytes/codecs/codecs.h"

namespace npyfs {

namespace {

class ByteSwap : public Codec {
 public:
  explicit ByteSwap(std::uint32_t number_nbytes) : Codec("bytes"), number_nbytes_(number_nbytes) {}

  std::optional<std::size_t> decode(std::span<const std::byte> in,
                                    std::span<std::byte> out) const override {
    if (in.size() > out.size()) {
      return std::nullopt;
    }
    if (in.size() % number_nbytes_ != 0) {
      throw damaged(
          fmt::format("{} bytes are there, expected a multiple of {}", in.size(), number_nbytes_));
    }
    for (std::size_t at = 0; at < in.size(); at += number_nbytes_) {
      std::reverse_copy(in.data() + at, in.data() + at + number_nbytes_, out.data() + at);
    }
    return in.size();
  }

  std::optional<std::uint64_t> encoded_nbytes(std::uint64_t decoded_nbytes) const override {
    return decoded_nbytes;
  }

 private:
  std::uint32_t number_nbytes_;
};

}  // namespace

CodecPtr make_byte_swap(std::uint32_t number_nbytes) {
  return std::make_unique<ByteSwap>(number_nbytes);
}

}  // namespace npyfs
