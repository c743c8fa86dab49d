// SPDX-License-Identifier: Apache-2.0
//
// HDF5's bitshuffle filter 32008 (kiyo-masui/bitshuffle: src/bitshuffle_core.c, bshuf_h5filter.c).
// Elements go by blocks of a multiple of eight. In a block the bits of one significance stand
// together: first bit 0 of byte 0 of every element, eight elements a byte, then bit 1, and so on.
//
//   plain       |block|block|...|shorter block|rest|
//   compressed  |decoded u64|block size u32|  then  |stored u32|block| ...  |rest|    big-endian
//
// `rest`: the elements that fill no eighth, as they are.

#include <fmt/format.h>
#include <lz4.h>
#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "formats/bytes/codecs/codec_chain.h"
#include "formats/bytes/codecs/codecs.h"
#include "formats/bytes/endian.h"

namespace npyfs {

namespace {

constexpr std::size_t kHeaderNbytes = 12;
// Elements in a block are a multiple of this.
constexpr std::uint64_t kGroup = 8;

// The 8 x 8 bits of `rows`, a row a byte, with rows and columns exchanged (Hacker's Delight, 7-3).
std::uint64_t transpose_bits(std::uint64_t rows) {
  std::uint64_t swapped = (rows ^ rows >> 7) & 0x00aa00aa00aa00aaU;
  rows ^= swapped ^ swapped << 7;
  swapped = (rows ^ rows >> 14) & 0x0000cccc0000ccccU;
  rows ^= swapped ^ swapped << 14;
  swapped = (rows ^ rows >> 28) & 0x00000000f0f0f0f0U;
  return rows ^ swapped ^ swapped << 28;
}

// `count` elements, a multiple of eight.
void gather_bits(const std::byte* in, std::byte* out, std::uint64_t count,
                 std::uint64_t element_nbytes) {
  const std::uint64_t groups = count / kGroup;
  for (std::uint64_t byte = 0; byte < element_nbytes; ++byte) {
    const std::byte* const planes = in + byte * 8 * groups;
    for (std::uint64_t group = 0; group < groups; ++group) {
      std::uint64_t bits = 0;
      for (std::uint64_t plane = 0; plane < 8; ++plane) {
        bits |= std::to_integer<std::uint64_t>(planes[plane * groups + group]) << 8 * plane;
      }
      bits = transpose_bits(bits);
      for (std::uint64_t i = 0; i < kGroup; ++i) {
        out[(group * kGroup + i) * element_nbytes + byte] = static_cast<std::byte>(bits >> 8 * i);
      }
    }
  }
}

class Bitshuffle : public Codec {
 public:
  Bitshuffle(std::uint64_t element_nbytes, std::uint64_t block_elements, BitshuffleInner inner)
      : Codec("bitshuffle"), element_nbytes_(element_nbytes), inner_(inner) {
    if (element_nbytes == 0 || element_nbytes > std::numeric_limits<std::int32_t>::max() ||
        block_elements % kGroup != 0 || block_elements > std::numeric_limits<std::int32_t>::max()) {
      throw Error(ErrorKind::kUnsupported,
                  fmt::format("bitshuffle of elements of {} bytes in blocks of {}", element_nbytes,
                              block_elements));
    }
    block_elements_ = block_elements != 0 ? block_elements : usual_block(element_nbytes);
  }

  std::optional<std::size_t> decode(std::span<const std::byte> in,
                                    std::span<std::byte> out) const override {
    const auto claimed = claimed_nbytes(in);
    if (!claimed) {
      throw damaged(
          fmt::format("{} bytes are there, expected a header of {}", in.size(), kHeaderNbytes));
    }
    const std::uint64_t nbytes = *claimed;
    if (nbytes > out.size()) {
      return std::nullopt;
    }
    std::uint64_t block_elements = block_elements_;
    if (inner_ != BitshuffleInner::kNone) {
      block_elements = __builtin_bswap32(load_le<std::uint32_t>(in.data() + 8)) / element_nbytes_;
      in = in.subspan(kHeaderNbytes);
    }
    if (block_elements == 0 || block_elements % kGroup != 0) {
      throw damaged(fmt::format("a block has {} elements, expected a multiple of {}",
                                block_elements, kGroup));
    }
    const std::uint64_t count = nbytes / element_nbytes_;
    const std::uint64_t whole = count - count % kGroup;
    Buffer unpacked(std::min(block_elements, whole) * element_nbytes_);
    for (std::uint64_t done = 0; done < whole;) {
      const std::uint64_t elements = std::min(block_elements, whole - done);
      const auto block = unpacked.bytes().first(elements * element_nbytes_);
      take_block(in, block);
      gather_bits(block.data(), out.data() + done * element_nbytes_, elements, element_nbytes_);
      done += elements;
    }
    const std::uint64_t rest = nbytes - whole * element_nbytes_;
    if (in.size() != rest) {
      throw damaged(fmt::format("{} bytes follow the blocks, expected {}", in.size(), rest));
    }
    std::copy(in.begin(), in.end(), out.data() + whole * element_nbytes_);
    return nbytes;
  }

  std::optional<std::uint64_t> encoded_nbytes(std::uint64_t decoded_nbytes) const override {
    return inner_ == BitshuffleInner::kNone ? std::optional(decoded_nbytes) : std::nullopt;
  }

  std::optional<std::uint64_t> claimed_nbytes(std::span<const std::byte> in) const override {
    if (inner_ == BitshuffleInner::kNone) {
      return in.size();
    }
    if (in.size() < kHeaderNbytes) {
      return std::nullopt;
    }
    return __builtin_bswap64(load_le<std::uint64_t>(in.data()));
  }

 private:
  static std::uint64_t usual_block(std::uint64_t element_nbytes) {
    constexpr std::uint64_t kTargetNbytes = 8192;
    constexpr std::uint64_t kLeastElements = 128;
    return std::max(kTargetNbytes / element_nbytes / kGroup * kGroup, kLeastElements);
  }

  // Unpacks one block into the whole of `out`; `in` moves behind it.
  void take_block(std::span<const std::byte>& in, std::span<std::byte> out) const {
    std::uint64_t stored = out.size();
    if (inner_ != BitshuffleInner::kNone) {
      if (in.size() < 4) {
        throw damaged("the blocks are cut");
      }
      stored = __builtin_bswap32(load_le<std::uint32_t>(in.data()));
      in = in.subspan(4);
    }
    if (stored > in.size()) {
      throw damaged(fmt::format("a block has {} bytes, expected at most the {} that follow", stored,
                                in.size()));
    }
    if (!unpack(in.first(stored), out)) {
      throw damaged("a block is damaged");
    }
    in = in.subspan(stored);
  }

  bool unpack(std::span<const std::byte> in, std::span<std::byte> out) const {
    switch (inner_) {
      case BitshuffleInner::kNone:
        std::memcpy(out.data(), in.data(), out.size());
        return true;
      case BitshuffleInner::kLz4:
        return in.size() <= LZ4_MAX_INPUT_SIZE && out.size() <= LZ4_MAX_INPUT_SIZE &&
               LZ4_decompress_safe(reinterpret_cast<const char*>(in.data()),
                                   reinterpret_cast<char*>(out.data()), static_cast<int>(in.size()),
                                   static_cast<int>(out.size())) == static_cast<int>(out.size());
      case BitshuffleInner::kZstd:
        return ZSTD_decompress(out.data(), out.size(), in.data(), in.size()) == out.size();
    }
    return false;
  }

  std::uint64_t element_nbytes_;
  std::uint64_t block_elements_;
  BitshuffleInner inner_;
};

}  // namespace

CodecPtr make_bitshuffle(std::uint64_t element_nbytes, std::uint64_t block_elements,
                         BitshuffleInner inner) {
  return std::make_unique<Bitshuffle>(element_nbytes, block_elements, inner);
}

}  // namespace npyfs
