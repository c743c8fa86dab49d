// SPDX-License-Identifier: Apache-2.0
//
// RFC 8878.

#include <fmt/format.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "formats/bytes/codecs/codecs.h"

namespace npyfs {

namespace {

class Zstd : public Codec {
 public:
  Zstd() : Codec("zstd") {}

  std::optional<std::size_t> decode(std::span<const std::byte> in,
                                    std::span<std::byte> out) const override {
    if (in.empty()) {
      throw damaged("the frame is empty");
    }
    const std::size_t made = ZSTD_decompress(out.data(), out.size(), in.data(), in.size());
    if (!ZSTD_isError(made)) {
      return made;
    }
    if (ZSTD_getErrorCode(made) == ZSTD_error_dstSize_tooSmall) {
      return std::nullopt;
    }
    throw damaged(fmt::format("the frame is damaged ({})", ZSTD_getErrorName(made)));
  }

  std::optional<std::uint64_t> claimed_nbytes(std::span<const std::byte> in) const override {
    const unsigned long long nbytes = ZSTD_getFrameContentSize(in.data(), in.size());
    if (nbytes == ZSTD_CONTENTSIZE_UNKNOWN || nbytes == ZSTD_CONTENTSIZE_ERROR) {
      return std::nullopt;
    }
    return nbytes;
  }
};

}  // namespace

CodecPtr make_zstd() { return std::make_unique<Zstd>(); }

}  // namespace npyfs
