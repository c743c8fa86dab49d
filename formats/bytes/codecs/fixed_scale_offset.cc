// SPDX-License-Identifier: Apache-2.0
//
// numcodecs: numcodecs/fixedscaleoffset.py. A number is stored / scale + offset, calculated as
// numpy does: in the stored type where that is a float, else in double.

#include "formats/bytes/codecs/codecs.h"
#include "formats/bytes/codecs/element_filter.h"

namespace npyfs {

namespace {

class FixedScaleOffset : public ElementFilter {
 public:
  FixedScaleOffset(const DType& dtype, const DType& stored, double scale, double offset)
      : ElementFilter("fixedscaleoffset", dtype, stored), scale_(scale), offset_(offset) {}

 private:
  template <typename Stored>
  auto restore(Computed<Stored> stored) const {
    if constexpr (std::is_same_v<Stored, float>) {
      return stored / static_cast<float>(scale_) + static_cast<float>(offset_);
    } else if constexpr (std::is_same_v<Stored, Half>) {
      const float quotient = to_float(to_half(stored / static_cast<float>(scale_)));
      return to_float(to_half(quotient + static_cast<float>(offset_)));
    } else {
      return static_cast<double>(stored) / scale_ + offset_;
    }
  }

  void decode_numbers(const std::byte* in, std::byte* out, std::size_t count) const override {
    with_number(stored_type(), [&]<typename Stored>(Stored) {
      with_number(type(), [&]<typename T>(T) {
        for (std::size_t i = 0; i < count; ++i) {
          const auto number = restore<Stored>(
              load_number<Stored>(in + i * sizeof(Stored), stored_type().big_endian));
          store_number<T>(convert_number<Computed<T>>(number), out + i * sizeof(T),
                          type().big_endian);
        }
      });
    });
  }

  double scale_;
  double offset_;
};

}  // namespace

CodecPtr make_fixed_scale_offset(const DType& dtype, const DType& stored, double scale,
                                 double offset) {
  return std::make_unique<FixedScaleOffset>(dtype, stored, scale, offset);
}

}  // namespace npyfs
