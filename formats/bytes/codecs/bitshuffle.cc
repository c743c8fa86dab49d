// SPDX-License-Identifier: Apache-2.0
//
// Bits of one significance together, and then compressed (kiyo-masui/bitshuffle: src/bitshuffle.c,
// src/bshuf_h5filter.c; HDF5's filter 32008). Compressed blocks have a header, all numbers
// big-endian:
//
//   0              8              12
//   |decoded nbytes|block nbytes  |{stored nbytes (4), LZ4 block or Zstandard frame} ...
//
// A block is a multiple of eight elements; in each, bit k of byte j of all elements lie together,
// byte by byte and from the lowest bit on. What is left of eight elements at the end follows as it
// is. Without a compressor there is no header, and blocks follow each other.

#include <fmt/format.h>
#include <lz4.h>
#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "formats/bytes/codecs/codecs.h"
#include "formats/bytes/endian.h"

namespace npyfs {

namespace {

constexpr std::size_t kHeadNbytes = 12;
constexpr std::size_t kSizeNbytes = 4;
constexpr std::size_t kGroup = 8;  // elements
constexpr std::uint64_t kMostBlockNbytes = std::uint64_t{64} << 20;

enum class Inner : std::uint32_t { kNone = 0, kLz4 = 2, kZstd = 3 };

// Transposes the 8x8 bits of eight bytes: bit i of byte j becomes bit j of byte i (Hacker's
// Delight, 7-3).
std::uint64_t transpose_bits(std::uint64_t x) {
  std::uint64_t t = (x ^ (x >> 7)) & 0x00aa00aa00aa00aaULL;
  x ^= t ^ (t << 7);
  t = (x ^ (x >> 14)) & 0x0000cccc0000ccccULL;
  x ^= t ^ (t << 14);
  t = (x ^ (x >> 28)) & 0x00000000f0f0f0f0ULL;
  return x ^ t ^ (t << 28);
}

// `in` holds, for each byte of an element and each bit of it, one bit for each of `count` elements
// (a multiple of eight).
void unshuffle(const std::byte* in, std::byte* out, std::size_t count, std::size_t element_nbytes) {
  const std::size_t row_nbytes = count / kGroup;
  for (std::size_t byte = 0; byte < element_nbytes; ++byte) {
    const std::byte* const rows = in + byte * kGroup * row_nbytes;
    for (std::size_t group = 0; group < row_nbytes; ++group) {
      std::uint64_t bits = 0;
      for (std::size_t bit = 0; bit < kGroup; ++bit) {
        bits |= std::to_integer<std::uint64_t>(rows[bit * row_nbytes + group]) << 8 * bit;
      }
      bits = transpose_bits(bits);
      for (std::size_t i = 0; i < kGroup; ++i) {
        out[(group * kGroup + i) * element_nbytes + byte] = static_cast<std::byte>(bits >> 8 * i);
      }
    }
  }
}

class Bitshuffle : public Codec {
 public:
  Bitshuffle(std::uint32_t element_nbytes, std::uint32_t block_elements, std::uint32_t inner)
      : Codec("bitshuffle"),
        element_nbytes_(element_nbytes),
        block_elements_(block_elements),
        inner_(static_cast<Inner>(inner)) {
    if (element_nbytes == 0 || block_elements % kGroup != 0 ||
        (inner_ != Inner::kNone && inner_ != Inner::kLz4 && inner_ != Inner::kZstd)) {
      throw Error(ErrorKind::kUnsupported,
                  fmt::format("bitshuffle: elements of {} bytes, blocks of {}, compressor {}",
                              element_nbytes, block_elements, inner));
    }
    if (block_elements_ == 0) {
      // The reference's choice: about 8 KiB, at least 128 elements.
      constexpr std::size_t kTargetNbytes = 8192;
      constexpr std::size_t kLeastElements = 128;
      block_elements_ = std::max(kTargetNbytes / element_nbytes_ / kGroup * kGroup, kLeastElements);
    }
  }

  std::optional<std::size_t> decode(std::span<const std::byte> in,
                                    std::span<std::byte> out) const override {
    if (inner_ == Inner::kNone) {
      return decode_plain(in, out);
    }
    const auto nbytes = claimed_nbytes(in);
    if (!nbytes) {
      throw damaged(fmt::format("{} bytes are there, expected {} or more", in.size(), kHeadNbytes));
    }
    if (*nbytes > out.size()) {
      return std::nullopt;
    }
    const std::size_t block_nbytes = __builtin_bswap32(load_le<std::uint32_t>(in.data() + 8));
    if (block_nbytes == 0 || block_nbytes % (kGroup * element_nbytes_) != 0 ||
        block_nbytes > kMostBlockNbytes) {
      throw damaged(
          fmt::format("blocks are {} bytes, expected a multiple of eight elements", block_nbytes));
    }
    in = in.subspan(kHeadNbytes);
    out = out.first(*nbytes);
    std::vector<std::byte> shuffled(block_nbytes);
    while (!out.empty()) {
      const auto block = out.first(whole_groups(std::min(block_nbytes, out.size())));
      if (block.empty()) {
        take_rest(in, out);
        break;
      }
      in = expand(in, std::span(shuffled).first(block.size()));
      unshuffle(shuffled.data(), block.data(), block.size() / element_nbytes_, element_nbytes_);
      out = out.subspan(block.size());
    }
    return *nbytes;
  }

  std::optional<std::uint64_t> claimed_nbytes(std::span<const std::byte> in) const override {
    if (inner_ == Inner::kNone || in.size() < kHeadNbytes) {
      return std::nullopt;
    }
    return __builtin_bswap64(load_le<std::uint64_t>(in.data()));
  }

  std::optional<std::uint64_t> encoded_nbytes(std::uint64_t decoded_nbytes) const override {
    return inner_ == Inner::kNone ? std::optional(decoded_nbytes) : std::nullopt;
  }

 private:
  std::size_t whole_groups(std::size_t nbytes) const {
    return nbytes / (kGroup * element_nbytes_) * (kGroup * element_nbytes_);
  }

  void take_rest(std::span<const std::byte> in, std::span<std::byte> out) const {
    if (in.size() < out.size()) {
      throw damaged("the last elements are cut");
    }
    std::memcpy(out.data(), in.data(), out.size());
  }

  std::optional<std::size_t> decode_plain(std::span<const std::byte> in,
                                          std::span<std::byte> out) const {
    if (in.size() > out.size()) {
      return std::nullopt;
    }
    const std::size_t nbytes = in.size();
    while (!in.empty()) {
      const std::size_t block =
          whole_groups(std::min(block_elements_ * element_nbytes_, in.size()));
      if (block == 0) {
        take_rest(in, out.first(in.size()));
        break;
      }
      unshuffle(in.data(), out.data(), block / element_nbytes_, element_nbytes_);
      in = in.subspan(block);
      out = out.subspan(block);
    }
    return nbytes;
  }

  // What stands behind it.
  std::span<const std::byte> expand(std::span<const std::byte> in, std::span<std::byte> out) const {
    const std::size_t stored =
        in.size() < kSizeNbytes ? 0 : __builtin_bswap32(load_le<std::uint32_t>(in.data()));
    if (in.size() < kSizeNbytes || stored > in.size() - kSizeNbytes ||
        stored > LZ4_MAX_INPUT_SIZE) {
      throw damaged("a block is cut");
    }
    const auto bytes = in.subspan(kSizeNbytes, stored);
    const std::size_t made =
        inner_ == Inner::kZstd
            ? ZSTD_decompress(out.data(), out.size(), bytes.data(), bytes.size())
            : static_cast<std::size_t>(LZ4_decompress_safe(
                  reinterpret_cast<const char*>(bytes.data()), reinterpret_cast<char*>(out.data()),
                  static_cast<int>(stored), static_cast<int>(out.size())));
    if (made != out.size()) {  // the libraries' errors are no sizes
      throw damaged("a block is damaged");
    }
    return in.subspan(kSizeNbytes + stored);
  }

  std::size_t element_nbytes_;
  std::size_t block_elements_;
  Inner inner_;
};

}  // namespace

CodecPtr make_bitshuffle(std::uint32_t element_nbytes, std::uint32_t block_elements,
                         std::uint32_t inner) {
  return std::make_unique<Bitshuffle>(element_nbytes, block_elements, inner);
}

}  // namespace npyfs
