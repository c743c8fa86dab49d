// SPDX-License-Identifier: Apache-2.0
//
// HDF5's szip filter (HDFGroup/hdf5: src/H5Zszip.c): the decoded size in four bytes, then the
// extended Rice coding of CCSDS 121.0-B, by libaec's stand-in for the szip library.

#include <fmt/format.h>

#include "formats/bytes/codecs/codecs.h"
#include "formats/bytes/endian.h"

// It does not say so itself.
extern "C" {
#include <szlib.h>
}

namespace npyfs {

namespace {

constexpr std::size_t kPrefixNbytes = 4;

class Szip : public Codec {
 public:
  explicit Szip(const SzipParameters& parameters) : Codec("szip"), parameters_(parameters) {
    const bool known_width = parameters.bits_per_pixel > 0 && parameters.bits_per_pixel <= 64;
    if (!known_width || parameters.pixels_per_block == 0 || parameters.pixels_per_block > 32 ||
        parameters.pixels_per_block % 2 != 0 ||
        parameters.pixels_per_scanline < parameters.pixels_per_block ||
        parameters.pixels_per_scanline > SZ_MAX_PIXELS_PER_SCANLINE) {
      throw Error(ErrorKind::kUnsupported,
                  fmt::format("szip: {} bits, {} pixels a block, {} a scan line; expected what the "
                              "szip library takes",
                              parameters.bits_per_pixel, parameters.pixels_per_block,
                              parameters.pixels_per_scanline));
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
    SZ_com_t parameters{static_cast<int>(parameters_.options),
                        static_cast<int>(parameters_.bits_per_pixel),
                        static_cast<int>(parameters_.pixels_per_block),
                        static_cast<int>(parameters_.pixels_per_scanline)};
    std::size_t made = *nbytes;
    const auto stream = in.subspan(kPrefixNbytes);
    if (SZ_BufftoBuffDecompress(out.data(), &made, stream.data(), stream.size(), &parameters) !=
            SZ_OK ||
        made != *nbytes) {
      throw damaged("the stream is damaged");
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
  SzipParameters parameters_;
};

}  // namespace

CodecPtr make_szip(const SzipParameters& parameters) { return std::make_unique<Szip>(parameters); }

}  // namespace npyfs
