// SPDX-License-Identifier: Apache-2.0
//
// HDF5's szip filter (src/H5Zszip.c): the decoded size in four bytes, then the stream, by libaec.

#include <fmt/format.h>
extern "C" {  // which the header does not say
#include <szlib.h>
}

#include "formats/bytes/codecs/codecs.h"
#include "formats/bytes/endian.h"

namespace npyfs {

namespace {

constexpr std::size_t kPrefixNbytes = 4;

class Szip : public Codec {
 public:
  explicit Szip(const SzipOptions& options) : Codec("szip"), options_(options) {
    if (options.bits_per_pixel == 0 || options.bits_per_pixel > 64 ||
        options.pixels_per_block == 0 || options.pixels_per_block > SZ_MAX_PIXELS_PER_BLOCK ||
        options.pixels_per_block % 2 != 0 || options.pixels_per_scanline == 0 ||
        options.pixels_per_scanline > SZ_MAX_PIXELS_PER_SCANLINE) {
      throw Error(ErrorKind::kUnsupported,
                  fmt::format("szip of {} bits a pixel, {} pixels a block, {} a scanline",
                              options.bits_per_pixel, options.pixels_per_block,
                              options.pixels_per_scanline));
    }
  }

  std::optional<std::size_t> decode(std::span<const std::byte> in,
                                    std::span<std::byte> out) const override {
    const auto nbytes = claimed_nbytes(in);
    if (!nbytes) {
      throw damaged(
          fmt::format("{} bytes are there, expected {} or more", in.size(), kPrefixNbytes));
    }
    if (*nbytes > out.size()) {
      return std::nullopt;
    }
    SZ_com_t parameters{};
    parameters.options_mask = static_cast<int>(options_.mask);
    parameters.bits_per_pixel = static_cast<int>(options_.bits_per_pixel);
    parameters.pixels_per_block = static_cast<int>(options_.pixels_per_block);
    parameters.pixels_per_scanline = static_cast<int>(options_.pixels_per_scanline);
    std::size_t made = *nbytes;
    const int result = SZ_BufftoBuffDecompress(out.data(), &made, in.data() + kPrefixNbytes,
                                               in.size() - kPrefixNbytes, &parameters);
    if (result != SZ_OK || made != *nbytes) {
      throw damaged(fmt::format("the stream is damaged (error {})", result));
    }
    return made;
  }

  std::optional<std::uint64_t> claimed_nbytes(std::span<const std::byte> in) const override {
    if (in.size() < kPrefixNbytes) {
      return std::nullopt;
    }
    return load_le<std::uint32_t>(in.data());
  }

 private:
  SzipOptions options_;
};

}  // namespace

CodecPtr make_szip(const SzipOptions& options) { return std::make_unique<Szip>(options); }

}  // namespace npyfs
