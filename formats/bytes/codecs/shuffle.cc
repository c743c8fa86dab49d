// SPDX-License-Identifier: Apache-2.0
//
// The bytes of all elements side by side, by significance: first the first byte of every element,
// then the second of every element. What is left of a last element follows as it is (HDF5:
// src/H5Zshuffle.c).

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "formats/bytes/codecs/codecs.h"

namespace npyfs {

namespace {

// The size as a constant: the loops are unrolled into interleaving instructions.
template <std::size_t kNbytes>
void gather(const std::byte* in, std::byte* out, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t j = 0; j < kNbytes; ++j) {
      out[i * kNbytes + j] = in[j * count + i];
    }
  }
}

class Shuffle : public Codec {
 public:
  explicit Shuffle(std::uint64_t element_nbytes)
      : Codec("shuffle"), element_nbytes_(element_nbytes) {
    if (element_nbytes_ == 0) {
      throw Error(ErrorKind::kUnsupported, "shuffle: element size is 0, expected 1 or more");
    }
  }

  std::optional<std::size_t> decode(std::span<const std::byte> in,
                                    std::span<std::byte> out) const override {
    if (in.size() > out.size()) {
      return std::nullopt;
    }
    if (in.empty()) {
      return 0;
    }
    const std::size_t count = in.size() / element_nbytes_;
    switch (element_nbytes_) {
      case 2:
        gather<2>(in.data(), out.data(), count);
        break;
      case 4:
        gather<4>(in.data(), out.data(), count);
        break;
      case 8:
        gather<8>(in.data(), out.data(), count);
        break;
      default:
        for (std::size_t i = 0; i < count; ++i) {
          for (std::size_t j = 0; j < element_nbytes_; ++j) {
            out[i * element_nbytes_ + j] = in[j * count + i];
          }
        }
    }
    const std::size_t whole = count * element_nbytes_;
    std::copy(in.begin() + whole, in.end(), out.begin() + whole);
    return in.size();
  }

  std::optional<std::uint64_t> encoded_nbytes(std::uint64_t decoded_nbytes) const override {
    return decoded_nbytes;
  }

 private:
  std::uint64_t element_nbytes_;
};

}  // namespace

CodecPtr make_shuffle(std::uint64_t element_nbytes) {
  return std::make_unique<Shuffle>(element_nbytes);
}

}  // namespace npyfs
