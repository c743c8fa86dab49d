// SPDX-License-Identifier: Apache-2.0
//
// numcodecs: numcodecs/delta.py. The first number is stored as it is, each later one as its
// difference to the one before it, in the order in which the chunk is stored.

#include "formats/bytes/codecs/codecs.h"
#include "formats/bytes/codecs/element_filter.h"

namespace npyfs {

namespace {

template <typename T>
Computed<T> sum_of(Computed<T> a, Computed<T> b) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));  // wraps
  } else if constexpr (std::is_same_v<T, Half>) {
    return to_float(to_half(a + b));
  } else {
    return a + b;
  }
}

class Delta : public ElementFilter {
 public:
  Delta(const DType& dtype, const DType& stored) : ElementFilter("delta", dtype, stored) {
    if (type().kind == 'b') {
      throw Error(ErrorKind::kUnsupported, "delta of booleans, expected integers or floats");
    }
  }

 private:
  void decode_numbers(const std::byte* in, std::byte* out, std::size_t count) const override {
    with_number(stored_type(), [&]<typename Stored>(Stored) {
      with_number(type(), [&]<typename T>(T) {
        Computed<T> sum{};
        for (std::size_t i = 0; i < count; ++i) {
          const auto step = convert_number<Computed<T>>(
              load_number<Stored>(in + i * sizeof(Stored), stored_type().big_endian));
          // Not 0 + step: that would lose the sign of -0.
          sum = i == 0 ? step : sum_of<T>(sum, step);
          store_number<T>(sum, out + i * sizeof(T), type().big_endian);
        }
      });
    });
  }
};

}  // namespace

CodecPtr make_delta(const DType& dtype, const DType& stored) {
  return std::make_unique<Delta>(dtype, stored);
}

}  // namespace npyfs
