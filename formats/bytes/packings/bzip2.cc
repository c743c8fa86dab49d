// SPDX-License-Identifier: Apache-2.0
//
// bzip2 streams; each counts as a frame.

#include <bzlib.h>

#include <new>
#include <string_view>

#include "formats/bytes/packings/packings.h"

namespace npyfs {

namespace {

bool is_bzip2(std::span<const std::byte> head) {
  const std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
  return text.size() >= 4 && text.starts_with("BZh") && text[3] >= '1' && text[3] <= '9';
}

class Bzip2Decoder : public FrameDecoder {
 public:
  Bzip2Decoder() { start(); }
  ~Bzip2Decoder() override { BZ2_bzDecompressEnd(&stream_); }
  Bzip2Decoder(const Bzip2Decoder&) = delete;
  Bzip2Decoder& operator=(const Bzip2Decoder&) = delete;

  std::size_t enter(const Frame& /*frame*/, std::span<const std::byte> /*head*/) override {
    BZ2_bzDecompressEnd(&stream_);
    start();
    return 0;
  }
  Progress step(std::span<const std::byte> in, std::span<std::byte> out) override {
    stream_.next_in = const_cast<char*>(reinterpret_cast<const char*>(in.data()));
    stream_.avail_in = static_cast<unsigned>(in.size());
    stream_.next_out = reinterpret_cast<char*>(out.data());
    stream_.avail_out = static_cast<unsigned>(out.size());
    const int code = BZ2_bzDecompress(&stream_);
    if (code != BZ_OK && code != BZ_STREAM_END) {
      throw Refusal{"a block does not match its checksum, or is none"};
    }
    return {in.size() - stream_.avail_in, out.size() - stream_.avail_out, code == BZ_STREAM_END};
  }
  // What the manual says of the largest blocks.
  std::uint64_t memory_nbytes() const override { return 3'700'000; }

 private:
  void start() {
    stream_ = {};
    if (BZ2_bzDecompressInit(&stream_, 0, 0) != BZ_OK) {
      throw std::bad_alloc();
    }
  }
  bz_stream stream_{};
};

std::unique_ptr<FrameDecoder> make_decoder() { return std::make_unique<Bzip2Decoder>(); }

}  // namespace

const Packing kBzip2Packing = {
    .name = "bzip2", .extension = "bz2", .recognises = is_bzip2, .make_decoder = make_decoder};

}  // namespace npyfs
