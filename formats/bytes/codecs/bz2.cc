// SPDX-License-Identifier: Apache-2.0

#include <bzlib.h>
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "formats/bytes/codecs/codecs.h"

namespace npyfs {

namespace {

class Bz2 : public Codec {
 public:
  Bz2() : Codec("bz2") {}

  std::optional<std::size_t> decode(std::span<const std::byte> in,
                                    std::span<std::byte> out) const override {
    std::size_t made = 0;
    do {
      const auto step = decode_stream(in, out.subspan(made));
      if (!step) {
        return std::nullopt;
      }
      made += *step;
    } while (starts_stream(in));
    return made;
  }

 private:
  static bool starts_stream(std::span<const std::byte> in) {
    return in.size() >= 3 && in[0] == std::byte{'B'} && in[1] == std::byte{'Z'} &&
           in[2] == std::byte{'h'};
  }

  // One stream; `in` moves behind it.
  std::optional<std::size_t> decode_stream(std::span<const std::byte>& in,
                                           std::span<std::byte> out) const {
    constexpr std::size_t kMost = std::numeric_limits<unsigned>::max();
    bz_stream stream{};
    if (BZ2_bzDecompressInit(&stream, 0, 0) != BZ_OK) {
      throw std::bad_alloc();
    }
    struct Ender {
      bz_stream* stream;
      ~Ender() { BZ2_bzDecompressEnd(stream); }
    };
    const Ender ender{&stream};
    std::size_t made = 0;
    for (;;) {
      const auto given = static_cast<unsigned>(std::min(in.size(), kMost));
      const auto room = static_cast<unsigned>(std::min(out.size() - made, kMost));
      // The library writes to neither.
      stream.next_in = const_cast<char*>(reinterpret_cast<const char*>(in.data()));
      stream.avail_in = given;
      stream.next_out = reinterpret_cast<char*>(out.data()) + made;
      stream.avail_out = room;
      const int result = BZ2_bzDecompress(&stream);
      const bool moved = stream.avail_in != given || stream.avail_out != room;
      in = in.subspan(given - stream.avail_in);
      made += room - stream.avail_out;
      if (result == BZ_STREAM_END) {
        return made;
      }
      if (result == BZ_MEM_ERROR) {
        throw std::bad_alloc();
      }
      if (result != BZ_OK) {
        throw damaged(fmt::format("the stream is damaged (error {})", result));
      }
      if (!moved) {
        if (in.empty()) {
          throw damaged("the stream is cut");
        }
        return std::nullopt;
      }
    }
  }
};

}  // namespace

CodecPtr make_bz2() { return std::make_unique<Bz2>(); }

}  // namespace npyfs
