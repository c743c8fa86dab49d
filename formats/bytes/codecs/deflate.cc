// SPDX-License-Identifier: Apache-2.0
//
// zlib streams and gzip members by libdeflate.

#include <fmt/format.h>
#include <libdeflate.h>

#include <algorithm>
#include <memory>

#include "formats/bytes/codecs/codecs.h"

namespace npyfs {

namespace {

struct FreeDecompressor {
  void operator()(libdeflate_decompressor* decompressor) const {
    libdeflate_free_decompressor(decompressor);
  }
};
using Decompressor = std::unique_ptr<libdeflate_decompressor, FreeDecompressor>;

Decompressor make_decompressor() {
  Decompressor decompressor(libdeflate_alloc_decompressor());
  if (decompressor == nullptr) {
    throw std::bad_alloc();
  }
  return decompressor;
}

class Zlib : public Codec {
 public:
  Zlib() : Codec("zlib") {}

  std::optional<std::size_t> decode(std::span<const std::byte> in,
                                    std::span<std::byte> out) const override {
    const Decompressor decompressor = make_decompressor();
    std::size_t made = 0;
    switch (libdeflate_zlib_decompress(decompressor.get(), in.data(), in.size(), out.data(),
                                       out.size(), &made)) {
      case LIBDEFLATE_SUCCESS:
        return made;
      case LIBDEFLATE_INSUFFICIENT_SPACE:
        return std::nullopt;
      default:
        throw damaged("the stream is damaged");
    }
  }
};

class Gzip : public Codec {
 public:
  Gzip() : Codec("gzip") {}

  std::optional<std::size_t> decode(std::span<const std::byte> in,
                                    std::span<std::byte> out) const override {
    const Decompressor decompressor = make_decompressor();
    std::size_t made = 0;
    do {
      std::size_t taken = 0;
      std::size_t step = 0;
      switch (libdeflate_gzip_decompress_ex(decompressor.get(), in.data(), in.size(),
                                            out.data() + made, out.size() - made, &taken, &step)) {
        case LIBDEFLATE_SUCCESS:
          break;
        case LIBDEFLATE_INSUFFICIENT_SPACE:
          return std::nullopt;
        default:
          throw damaged("the stream is damaged");
      }
      made += step;
      in = in.subspan(taken);
    } while (!is_padding(in));
    return made;
  }

 private:
  static bool is_padding(std::span<const std::byte> in) {
    return std::all_of(in.begin(), in.end(), [](std::byte byte) { return byte == std::byte{0}; });
  }
};

}  // namespace

CodecPtr make_zlib() { return std::make_unique<Zlib>(); }
CodecPtr make_gzip() { return std::make_unique<Gzip>(); }

}  // namespace npyfs
