// SPDX-License-Identifier: Apache-2.0
//
// Zstandard frames. Their windows are limited by the library: to kMostFrameMemory.

#include <zstd.h>

#include <new>
#include <string_view>

#include "formats/bytes/endian.h"
#include "formats/bytes/packings/packings.h"

namespace npyfs {

namespace {

bool is_zstd(std::span<const std::byte> head) {
  return is_skippable_frame(head) ||
         (head.size() >= 4 && load_le<std::uint32_t>(head.data()) == ZSTD_MAGICNUMBER);
}

class ZstdDecoder : public FrameDecoder {
 public:
  ZstdDecoder() : context_(ZSTD_createDCtx()) {
    if (context_ == nullptr) {
      throw std::bad_alloc();
    }
  }
  ~ZstdDecoder() override { ZSTD_freeDCtx(context_); }
  ZstdDecoder(const ZstdDecoder&) = delete;
  ZstdDecoder& operator=(const ZstdDecoder&) = delete;

  std::size_t enter(const Frame& /*frame*/, std::span<const std::byte> /*head*/) override {
    ZSTD_DCtx_reset(context_, ZSTD_reset_session_only);
    return 0;
  }
  Progress step(std::span<const std::byte> in, std::span<std::byte> out) override {
    ZSTD_inBuffer from{in.data(), in.size(), 0};
    ZSTD_outBuffer to{out.data(), out.size(), 0};
    const std::size_t code = ZSTD_decompressStream(context_, &to, &from);
    if (ZSTD_isError(code) != 0) {
      const std::string_view why = ZSTD_getErrorName(code);
      throw Refusal{why.data(), why.find("memory") == std::string_view::npos
                                    ? Refusal::Kind::kDamaged
                                    : Refusal::Kind::kNeedsMemory};
    }
    return {from.pos, to.pos, code == 0};
  }
  std::uint64_t memory_nbytes() const override { return ZSTD_sizeof_DCtx(context_); }

 private:
  ZSTD_DCtx* context_;
};

std::unique_ptr<FrameDecoder> make_decoder() { return std::make_unique<ZstdDecoder>(); }

}  // namespace

const Packing kZstdPacking = {
    .name = "zstd", .extension = "zst", .recognises = is_zstd, .make_decoder = make_decoder};

}  // namespace npyfs
