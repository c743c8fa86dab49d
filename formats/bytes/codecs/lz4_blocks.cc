// SPDX-License-Identifier: Apache-2.0
//
// HDF5's filter 32004 (HDFGroup/hdf5_plugins: LZ4/src/H5Zlz4.c); all numbers big-endian.
//
//   0              8              12
//   |decoded nbytes|block nbytes  |{stored nbytes (4), an LZ4 block} ...
//
// A block that is stored in as many bytes as it decodes to is not compressed.

#include <fmt/format.h>
#include <lz4.h>

#include <algorithm>
#include <cstring>

#include "formats/bytes/codecs/codecs.h"
#include "formats/bytes/endian.h"

namespace npyfs {

namespace {

constexpr std::size_t kHeadNbytes = 12;
constexpr std::size_t kSizeNbytes = 4;

std::uint32_t load_be32(const std::byte* bytes) {
  return __builtin_bswap32(load_le<std::uint32_t>(bytes));
}

class Lz4Blocks : public Codec {
 public:
  Lz4Blocks() : Codec("lz4") {}

  std::optional<std::size_t> decode(std::span<const std::byte> in,
                                    std::span<std::byte> out) const override {
    const auto nbytes = claimed_nbytes(in);
    if (!nbytes) {
      throw damaged(fmt::format("{} bytes are there, expected {} or more", in.size(), kHeadNbytes));
    }
    if (*nbytes > out.size()) {
      return std::nullopt;
    }
    const std::size_t block_nbytes = load_be32(in.data() + 8);
    if (block_nbytes == 0 || block_nbytes > LZ4_MAX_INPUT_SIZE) {
      throw damaged(
          fmt::format("blocks are {} bytes, expected 1 to {}", block_nbytes, LZ4_MAX_INPUT_SIZE));
    }
    in = in.subspan(kHeadNbytes);
    out = out.first(*nbytes);
    while (!out.empty()) {
      const auto block = out.first(std::min(block_nbytes, out.size()));
      in = decode_block(in, block);
      out = out.subspan(block.size());
    }
    return *nbytes;
  }

  std::optional<std::uint64_t> claimed_nbytes(std::span<const std::byte> in) const override {
    if (in.size() < kHeadNbytes) {
      return std::nullopt;
    }
    return __builtin_bswap64(load_le<std::uint64_t>(in.data()));
  }

 private:
  // What stands behind it.
  std::span<const std::byte> decode_block(std::span<const std::byte> in,
                                          std::span<std::byte> block) const {
    const std::size_t stored = in.size() < kSizeNbytes ? 0 : load_be32(in.data());
    if (in.size() < kSizeNbytes || stored > in.size() - kSizeNbytes) {
      throw damaged("a block is cut");
    }
    const auto bytes = in.subspan(kSizeNbytes, stored);
    if (stored == block.size()) {
      std::memcpy(block.data(), bytes.data(), stored);
    } else if (stored > LZ4_MAX_INPUT_SIZE ||
               LZ4_decompress_safe(reinterpret_cast<const char*>(bytes.data()),
                                   reinterpret_cast<char*>(block.data()), static_cast<int>(stored),
                                   static_cast<int>(block.size())) !=
                   static_cast<int>(block.size())) {
      throw damaged("a block is damaged");
    }
    return in.subspan(kSizeNbytes + stored);
  }
};

}  // namespace

CodecPtr make_lz4_blocks() { return std::make_unique<Lz4Blocks>(); }

}  // namespace npyfs
