// SPDX-License-Identifier: Apache-2.0

#include "formats/bytes/codecs/element_filter.h"

#include <fmt/format.h>

namespace npyfs {

namespace {

NumberType require_number(const std::string& codec, const DType& dtype) {
  if (const auto type = number_type(dtype)) {
    return *type;
  }
  throw Error(ErrorKind::kUnsupported,
              fmt::format("{} of {}, expected booleans, integers or floats", codec, dtype.text()));
}

}  // namespace

ElementFilter::ElementFilter(std::string name, const DType& dtype, const DType& stored)
    : Codec(name), type_(require_number(name, dtype)), stored_type_(require_number(name, stored)) {}

std::optional<std::size_t> ElementFilter::decode(std::span<const std::byte> in,
                                                 std::span<std::byte> out) const {
  const std::size_t count = in.size() / stored_type_.nbytes;
  if (in.size() % stored_type_.nbytes != 0) {
    throw damaged(fmt::format("{} bytes are there, expected a multiple of {}", in.size(),
                              stored_type_.nbytes));
  }
  if (count > out.size() / type_.nbytes) {
    return std::nullopt;
  }
  decode_numbers(in.data(), out.data(), count);
  return count * type_.nbytes;
}

std::optional<std::uint64_t> ElementFilter::encoded_nbytes(std::uint64_t decoded_nbytes) const {
  return decoded_nbytes / type_.nbytes * stored_type_.nbytes;
}

}  // namespace npyfs
