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
  ByteSwap(std::uint64_t element_nbytes, std::vector<std::uint32_t> widths)
      : Codec("bytes"), element_nbytes_(element_nbytes), widths_(std::move(widths)) {}

  std::optional<std::size_t> decode(std::span<const std::byte> in,
                                    std::span<std::byte> out) const override {
    if (in.size() > out.size()) {
      return std::nullopt;
    }
    if (in.size() % element_nbytes_ != 0) {
      throw damaged(
          fmt::format("{} bytes are there, expected a multiple of {}", in.size(), element_nbytes_));
    }
    for (std::size_t at = 0; at < in.size();) {
      for (const std::uint32_t width : widths_) {
        std::reverse_copy(in.begin() + at, in.begin() + at + width, out.begin() + at);
        at += width;
      }
    }
    return in.size();
  }

  std::optional<std::uint64_t> encoded_nbytes(std::uint64_t decoded_nbytes) const override {
    return decoded_nbytes;
  }

 private:
  std::uint64_t element_nbytes_;
  std::vector<std::uint32_t> widths_;
};

}  // namespace

CodecPtr make_byte_swap(std::uint64_t element_nbytes, std::vector<std::uint32_t> widths) {
  return std::make_unique<ByteSwap>(element_nbytes, std::move(widths));
}

}  // namespace npyfs
