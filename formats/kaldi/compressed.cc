// SPDX-License-Identifier: Apache-2.0
//
// [kaldi-asr/kaldi:src/matrix/compressed-matrix.h]. All arithmetic is float32 but where it says
// double, each operation rounded for itself: this file is compiled with -ffp-contract=off.

#include "formats/kaldi/compressed.h"

#include <algorithm>
#include <array>

#include "formats/bytes/endian.h"

namespace npyfs {

namespace {

struct Scale {
  float least = 0;
  float range = 0;
};

// The value of one of a column's four marks.
float mark_value(Scale scale, std::uint16_t mark) {
  constexpr float kStep = 1.52590218966964e-05F;  // 1/65535
  const float step = scale.range * kStep;
  const float above = step * static_cast<float>(mark);
  return scale.least + above;
}

float between(float low, float high, int steps, double step) {
  const float distance = (high - low) * static_cast<float>(steps);
  return static_cast<float>(static_cast<double>(low) + static_cast<double>(distance) * step);
}

// Every code's value in a column with these marks.
void fill_codes(Scale scale, const std::byte* marks, std::array<float, 256>& values) {
  const float p0 = mark_value(scale, load_le<std::uint16_t>(marks));
  const float p25 = mark_value(scale, load_le<std::uint16_t>(marks + 2));
  const float p75 = mark_value(scale, load_le<std::uint16_t>(marks + 4));
  const float p100 = mark_value(scale, load_le<std::uint16_t>(marks + 6));
  for (int code = 0; code < 256; ++code) {
    values[static_cast<std::size_t>(code)] = code <= 64 ? between(p0, p25, code, 1 / 64.0)
                                             : code <= 192
                                                 ? between(p25, p75, code - 64, 1 / 128.0)
                                                 : between(p75, p100, code - 192, 1 / 63.0);
  }
}

// Codes lie column by column: several are turned at once, so that rows of `out` are written in
// pieces rather than value by value.
void decode_columns(const Object& object, Scale scale, const std::byte* data,
                    std::span<float> out) {
  constexpr std::size_t kAtOnce = 16;
  const std::size_t rows = object.rows;
  const std::size_t cols = object.cols;
  const std::byte* const codes = data + cols * 8;
  std::array<std::array<float, 256>, kAtOnce> values;
  for (std::size_t first = 0; first < cols; first += kAtOnce) {
    const std::size_t count = std::min(kAtOnce, cols - first);
    for (std::size_t i = 0; i < count; ++i) {
      fill_codes(scale, data + (first + i) * 8, values[i]);
    }
    for (std::size_t row = 0; row < rows; ++row) {
      for (std::size_t i = 0; i < count; ++i) {
        out[row * cols + first + i] =
            values[i][std::to_integer<std::size_t>(codes[(first + i) * rows + row])];
      }
    }
  }
}

}  // namespace

void decode_compressed(const Object& object, std::span<const std::byte> stored,
                       std::span<float> out) {
  const std::byte* const data = stored.data() + object.header_nbytes;
  const Scale scale{load_le<float>(data - 16), load_le<float>(data - 12)};
  if (object.kind == ObjectKind::kCompressed) {
    decode_columns(object, scale, data, out);
    return;
  }
  const bool wide = object.kind == ObjectKind::kCompressed2;
  const auto step =
      static_cast<float>(static_cast<double>(scale.range) * (1.0 / (wide ? 65535.0 : 255.0)));
  for (std::size_t i = 0; i < out.size(); ++i) {
    const auto code = wide ? static_cast<float>(load_le<std::uint16_t>(data + 2 * i))
                           : static_cast<float>(std::to_integer<unsigned>(data[i]));
    const float above = code * step;
    out[i] = scale.least + above;
  }
}

}  // namespace npyfs
