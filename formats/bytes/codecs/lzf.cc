// SPDX-License-Identifier: Apache-2.0
//
// liblzf's blocks, as h5py's filter stores them: no header, no size. libLZF: lzf_d.c.
//
//   000LLLLL                 then L+1 bytes as they are
//   LLLooooo oooooooo        L 1 to 6: L+2 bytes from o+1 bytes before
//   111ooooo LLLLLLLL oooooooo   L+9 bytes from o+1 bytes before

#include <cstring>

#include "formats/bytes/codecs/codecs.h"

namespace npyfs {

namespace {

class Lzf : public Codec {
 public:
  Lzf() : Codec("lzf") {}

  std::optional<std::size_t> decode(std::span<const std::byte> in,
                                    std::span<std::byte> out) const override {
    const std::byte* from = in.data();
    const std::byte* const from_end = from + in.size();
    std::byte* to = out.data();
    std::byte* const to_end = to + out.size();
    while (from < from_end) {
      const auto control = std::to_integer<std::size_t>(*from++);
      if (control < 32) {
        const std::size_t nbytes = control + 1;
        if (static_cast<std::size_t>(from_end - from) < nbytes) {
          throw damaged("the block ends within a run of bytes");
        }
        if (static_cast<std::size_t>(to_end - to) < nbytes) {
          return std::nullopt;
        }
        copy_run(from, from_end, to, to_end, nbytes);
        from += nbytes;
        to += nbytes;
        continue;
      }
      std::size_t nbytes = control >> 5;
      if (from_end - from < (nbytes == 7 ? 2 : 1)) {
        throw damaged("the block ends within a reference");
      }
      if (nbytes == 7) {
        nbytes += std::to_integer<std::size_t>(*from++);
      }
      nbytes += 2;
      const std::size_t back = ((control & 0x1f) << 8 | std::to_integer<std::size_t>(*from++)) + 1;
      if (back > static_cast<std::size_t>(to - out.data())) {
        throw damaged("a reference leads to before the beginning");
      }
      if (static_cast<std::size_t>(to_end - to) < nbytes) {
        return std::nullopt;
      }
      copy_back(to, to_end, back, nbytes);
      to += nbytes;
    }
    return static_cast<std::size_t>(to - out.data());
  }

 private:
  // Where there is room, more is copied than needed, in steps of a fixed size.
  static constexpr std::size_t kStep = 16;

  static void copy_run(const std::byte* from, const std::byte* from_end, std::byte* to,
                       const std::byte* to_end, std::size_t nbytes) {
    constexpr std::ptrdiff_t kMostRun = 32;
    if (from_end - from >= kMostRun && to_end - to >= kMostRun) {
      std::memcpy(to, from, kMostRun);
    } else {
      std::memcpy(to, from, nbytes);
    }
  }

  static void copy_back(std::byte* to, const std::byte* to_end, std::size_t back,
                        std::size_t nbytes) {
    const std::byte* from = to - back;
    if (back == 1) {
      std::memset(to, std::to_integer<int>(*from), nbytes);
    } else if (back >= kStep && static_cast<std::size_t>(to_end - to) >= nbytes + kStep) {
      for (std::size_t at = 0; at < nbytes; at += kStep) {
        std::memcpy(to + at, from + at, kStep);
      }
    } else {
      // What is written here is what is read further on.
      for (std::size_t at = 0; at < nbytes; ++at) {
        to[at] = from[at];
      }
    }
  }
};

}  // namespace

CodecPtr make_lzf() { return std::make_unique<Lzf>(); }

}  // namespace npyfs
