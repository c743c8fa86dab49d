// SPDX-License-Identifier: Apache-2.0
//
// What the filters have in common that turn each stored number into one number of another type.

#pragma once

#include <string>

#include "formats/bytes/codecs/codec.h"
#include "formats/bytes/codecs/numbers.h"

namespace npyfs {

class ElementFilter : public Codec {
 public:
  std::optional<std::size_t> decode(std::span<const std::byte> in,
                                    std::span<std::byte> out) const final;
  std::optional<std::uint64_t> encoded_nbytes(std::uint64_t decoded_nbytes) const final;

 protected:
  // Throws kUnsupported for types that are no numbers.
  ElementFilter(std::string name, const DType& dtype, const DType& stored);

  const NumberType& type() const { return type_; }
  const NumberType& stored_type() const { return stored_type_; }

  // Decodes `count` numbers.
  virtual void decode_numbers(const std::byte* in, std::byte* out, std::size_t count) const = 0;

 private:
  NumberType type_;
  NumberType stored_type_;
};

}  // namespace npyfs
