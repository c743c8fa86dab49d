// SPDX-License-Identifier: Apache-2.0
//
// numcodecs: numcodecs/lz4.pyx. Four bytes little-endian with the decoded size, then one LZ4 block
// without a frame.

#include <fmt/format.h>
#include <lz4.h>

#include <limits>

#include "formats/bytes/codecs/codecs.h"
#include "formats/bytes/endian.h"

namespace npyfs {

namespace {

constexpr std::size_t kPrefixNbytes = 4;

class Lz4 : public Codec {
 public:
  Lz4() : Codec("lz4") {}

  std::optional<std::size_t> decode(std::span<const std::byte> in,
                                    std::span<std::byte> out) const override {
    const auto nbytes = claimed_nbytes(in);
    if (!nbytes) {
      throw damaged(
          fmt::format("{} bytes are there, expected {} or more", in.size(), kPrefixNbytes));
    }
    if (*nbytes > LZ4_MAX_INPUT_SIZE || in.size() > std::numeric_limits<int>::max()) {
      throw damaged(
          fmt::format("decoded size is {}, expected at most {}", *nbytes, LZ4_MAX_INPUT_SIZE));
    }
    if (*nbytes > out.size()) {
      return std::nullopt;
    }
    const int made =
        LZ4_decompress_safe(reinterpret_cast<const char*>(in.data()) + kPrefixNbytes,
                            reinterpret_cast<char*>(out.data()),
                            static_cast<int>(in.size() - kPrefixNbytes), static_cast<int>(*nbytes));
    if (made < 0 || static_cast<std::uint64_t>(made) != *nbytes) {
      throw damaged("the block is damaged");
    }
    return *nbytes;
  }

  std::optional<std::uint64_t> claimed_nbytes(std::span<const std::byte> in) const override {
    if (in.size() < kPrefixNbytes) {
      return std::nullopt;
    }
    return load_le<std::uint32_t>(in.data());
  }
};

}  // namespace

CodecPtr make_lz4() { return std::make_unique<Lz4>(); }

}  // namespace npyfs
