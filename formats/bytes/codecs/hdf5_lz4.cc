// SPDX-License-Identifier: Apache-2.0
//
// HDF5's LZ4 filter 32004 (HDFGroup/hdf5_plugins: LZ4/src/H5Zlz4.c), big-endian: the decoded size
// in eight bytes, that of a block in four, then for each block its stored size in four and the
// block; one that did not become smaller is stored as it is.

#include <fmt/format.h>
#include <lz4.h>

#include <algorithm>
#include <cstring>

#include "formats/bytes/codecs/codecs.h"
#include "formats/bytes/endian.h"

namespace npyfs {

namespace {

constexpr std::size_t kHeaderNbytes = 12;

class Hdf5Lz4 : public Codec {
 public:
  Hdf5Lz4() : Codec("lz4") {}

  std::optional<std::size_t> decode(std::span<const std::byte> in,
                                    std::span<std::byte> out) const override {
    const auto nbytes = claimed_nbytes(in);
    if (!nbytes) {
      throw damaged(
          fmt::format("{} bytes are there, expected a header of {}", in.size(), kHeaderNbytes));
    }
    const std::uint64_t block_nbytes = __builtin_bswap32(load_le<std::uint32_t>(in.data() + 8));
    if (block_nbytes == 0 || block_nbytes > LZ4_MAX_INPUT_SIZE) {
      throw damaged(
          fmt::format("block size is {}, expected 1 to {}", block_nbytes, LZ4_MAX_INPUT_SIZE));
    }
    if (*nbytes > out.size()) {
      return std::nullopt;
    }
    in = in.subspan(kHeaderNbytes);
    for (std::uint64_t made = 0; made < *nbytes;) {
      const std::uint64_t wanted = std::min(block_nbytes, *nbytes - made);
      in = in.subspan(decode_block(in, out.subspan(made, wanted)));
      made += wanted;
    }
    return *nbytes;
  }

  std::optional<std::uint64_t> claimed_nbytes(std::span<const std::byte> in) const override {
    if (in.size() < kHeaderNbytes) {
      return std::nullopt;
    }
    return __builtin_bswap64(load_le<std::uint64_t>(in.data()));
  }

 private:
  // Fills `out`; how many bytes of `in` that took.
  std::size_t decode_block(std::span<const std::byte> in, std::span<std::byte> out) const {
    if (in.size() < 4) {
      throw damaged("the blocks are cut");
    }
    const std::size_t stored = __builtin_bswap32(load_le<std::uint32_t>(in.data()));
    in = in.subspan(4);
    if (stored > in.size() || stored > LZ4_MAX_INPUT_SIZE) {
      throw damaged(fmt::format("a block has {} bytes, expected at most the {} that follow", stored,
                                in.size()));
    }
    if (stored == out.size()) {
      std::memcpy(out.data(), in.data(), stored);
    } else if (LZ4_decompress_safe(reinterpret_cast<const char*>(in.data()),
                                   reinterpret_cast<char*>(out.data()), static_cast<int>(stored),
                                   static_cast<int>(out.size())) != static_cast<int>(out.size())) {
      throw damaged("a block is damaged");
    }
    return 4 + stored;
  }
};

}  // namespace

CodecPtr make_hdf5_lz4() { return std::make_unique<Hdf5Lz4>(); }

}  // namespace npyfs
