// SPDX-License-Identifier: Apache-2.0

#include "formats/zarr/transpose.h"

#include <fmt/format.h>

#include <utility>

#include "formats/bytes/transpose.h"

namespace npyfs {

namespace {

class Transpose : public Codec {
 public:
  explicit Transpose(Transposition transposition)
      : Codec("transpose"), transposition_(std::move(transposition)) {}

  std::optional<std::size_t> decode(std::span<const std::byte> in,
                                    std::span<std::byte> out) const override {
    const std::uint64_t nbytes = transposition_.nbytes();
    if (in.size() != nbytes) {
      throw damaged(fmt::format("{} bytes are there, expected {}", in.size(), nbytes));
    }
    if (out.size() < nbytes) {
      return std::nullopt;
    }
    transposition_.apply(in, out.first(nbytes));
    return nbytes;
  }

  std::optional<std::uint64_t> encoded_nbytes(std::uint64_t decoded_nbytes) const override {
    return decoded_nbytes;
  }

 private:
  Transposition transposition_;
};

}  // namespace

CodecPtr make_transpose(Shape shape, std::vector<std::size_t> order, std::uint64_t element_nbytes) {
  return std::make_unique<Transpose>(Transposition(std::move(shape), order, element_nbytes));
}

Shape transposed(const Shape& shape, const std::vector<std::size_t>& order) {
  Shape stored;
  for (const std::size_t axis : order) {
    stored.push_back(shape[axis]);
  }
  return stored;
}

}  // namespace npyfs
