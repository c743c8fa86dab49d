// SPDX-License-Identifier: Apache-2.0
//
// Codecs that only lose something when they encode.

#include <algorithm>

#include "formats/bytes/codecs/codecs.h"

namespace npyfs {

namespace {

class Identity : public Codec {
 public:
  explicit Identity(const std::string& name) : Codec(name) {}

  std::optional<std::size_t> decode(std::span<const std::byte> in,
                                    std::span<std::byte> out) const override {
    if (in.size() > out.size()) {
      return std::nullopt;
    }
    std::copy(in.begin(), in.end(), out.begin());
    return in.size();
  }

  std::optional<std::uint64_t> encoded_nbytes(std::uint64_t decoded_nbytes) const override {
    return decoded_nbytes;
  }
};

}  // namespace

CodecPtr make_identity(const std::string& name) { return std::make_unique<Identity>(name); }

}  // namespace npyfs
