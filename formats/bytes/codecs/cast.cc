// SPDX-License-Identifier: Apache-2.0
//
// numcodecs: numcodecs/astype.py, quantize.py: numbers stored as another type.

#include "formats/bytes/codecs/codecs.h"
#include "formats/bytes/codecs/element_filter.h"

namespace npyfs {

namespace {

class Cast : public ElementFilter {
 public:
  Cast(const std::string& name, const DType& dtype, const DType& stored)
      : ElementFilter(name, dtype, stored) {}

 private:
  void decode_numbers(const std::byte* in, std::byte* out, std::size_t count) const override {
    cast_numbers(stored_type(), in, type(), out, count);
  }
};

}  // namespace

CodecPtr make_cast(const std::string& name, const DType& dtype, const DType& stored) {
  return std::make_unique<Cast>(name, dtype, stored);
}

}  // namespace npyfs
