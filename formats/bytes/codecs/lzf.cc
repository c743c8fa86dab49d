// SPDX-License-Identifier: Apache-2.0
//
// h5py's LZF filter: one liblzf block without a header (liblzf: lzf_d.c). A control byte below 32
// is followed by that many literals and one; else its upper three bits are a length, its lower five
// and the byte behind the distance of what is repeated.

#include <fmt/format.h>

#include <cstring>

#include "formats/bytes/codecs/codecs.h"

namespace npyfs {

namespace {

class Lzf : public Codec {
 public:
  Lzf() : Codec("lzf") {}

  std::optional<std::size_t> decode(std::span<const std::byte> in,
                                    std::span<std::byte> out) const override {
    std::size_t at = 0;
    std::size_t made = 0;
    const auto next = [&] {
      if (at == in.size()) {
        throw damaged("the block is cut");
      }
      return std::to_integer<std::size_t>(in[at++]);
    };
    while (at < in.size()) {
      const std::size_t control = next();
      const bool is_literal = control < 32;
      std::size_t nbytes = is_literal ? control + 1 : control >> 5;
      if (!is_literal) {
        nbytes += nbytes == 7 ? next() + 2 : 2;
      }
      const std::size_t distance = is_literal ? 0 : ((control & 31) << 8 | next()) + 1;
      if (distance > made || (is_literal && nbytes > in.size() - at)) {
        throw damaged(is_literal ? "the block is cut"
                                 : fmt::format("it repeats what is {} bytes back, expected at most "
                                               "{}",
                                               distance, made));
      }
      if (nbytes > out.size() - made) {
        return std::nullopt;
      }
      if (is_literal) {
        std::memcpy(out.data() + made, in.data() + at, nbytes);
        at += nbytes;
      } else {
        for (std::size_t i = 0; i < nbytes; ++i) {  // may repeat what it has just written
          out[made + i] = out[made + i - distance];
        }
      }
      made += nbytes;
    }
    return made;
  }
};

}  // namespace

CodecPtr make_lzf() { return std::make_unique<Lzf>(); }

}  // namespace npyfs
