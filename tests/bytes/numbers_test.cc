// SPDX-License-Identifier: Apache-2.0
//
// Numbers from bytes: of any order, and of the half of a float.

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>

#include "formats/bytes/endian.h"
#include "formats/bytes/half.h"
#include "formats/bytes/text_view.h"

namespace npyfs {
namespace {

TEST(Endian, NumbersOfEitherOrder) {
  const std::array<std::byte, 9> bytes = {std::byte{0xff}, std::byte{0x40}, std::byte{0x09},
                                          std::byte{0x21}, std::byte{0xfb}, std::byte{0x54},
                                          std::byte{0x44}, std::byte{0x2d}, std::byte{0x18}};
  const std::byte* at = bytes.data() + 1;  // not aligned
  EXPECT_EQ(load_be<double>(at), M_PI);
  EXPECT_EQ(load_be<std::uint64_t>(at), 0x400921fb54442d18U);
  EXPECT_EQ(load_be<std::int32_t>(at), 0x400921fb);
  EXPECT_EQ(load_be<std::int16_t>(at - 1), -192);
  EXPECT_EQ(load_be<std::int8_t>(at - 1), -1);
  EXPECT_EQ(load<std::uint16_t>(at, true), 0x4009);
  EXPECT_EQ(load<std::uint16_t>(at, false), 0x0940);
}

TEST(Half, EveryOneComesBackFromEitherFloat) {
  for (std::uint32_t bits = 0; bits <= 0xffff; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    ASSERT_EQ(to_half_bits(from_half<double>(half)), half);
    ASSERT_EQ(to_half_bits(from_half<float>(half)), half);
    const double value = from_half<double>(half);
    ASSERT_EQ(std::isnan(value), (half & 0x7fff) > 0x7c00);
    if (!std::isnan(value)) {
      ASSERT_EQ(static_cast<double>(from_half<float>(half)), value);
    }
  }
}

TEST(Half, RoundsToTheNearestAndTiesToEven) {
  // Between any two neighbours, the middle and what is beside it.
  for (std::uint16_t half = 0; half < 0x7bff; ++half) {
    const double low = from_half<double>(half);
    const double middle = (low + from_half<double>(static_cast<std::uint16_t>(half + 1))) / 2;
    const int even = half + (half & 1);
    ASSERT_EQ(to_half_bits(middle), even);
    ASSERT_EQ(to_half_bits(static_cast<float>(middle)), even);
    ASSERT_EQ(to_half_bits(std::nextafter(middle, 0.0)), half);
    ASSERT_EQ(to_half_bits(std::nextafter(middle, 1e6)), half + 1);
    ASSERT_EQ(to_half_bits(-middle), even | 0x8000);
  }
  EXPECT_EQ(to_half_bits(65519.0), 0x7bff);
  EXPECT_EQ(to_half_bits(65520.0), 0x7c00);
  EXPECT_EQ(to_half_bits(-1e300), 0xfc00);
}

// numpy.float64(...).astype("f2").view("u2") of numpy 1.24.
TEST(Half, ANaNKeepsItsSignAndWhatItsFractionBeginsWith) {
  const auto half_of = [](std::uint64_t bits) { return to_half_bits(std::bit_cast<double>(bits)); };
  EXPECT_EQ(half_of(0x7ff8000000000000), 0x7e00);
  EXPECT_EQ(half_of(0xfff8000000000000), 0xfe00);
  EXPECT_EQ(half_of(0x7ff8040000000000), 0x7e01);
  EXPECT_EQ(half_of(0x7ff8000000000001), 0x7e00);
  EXPECT_EQ(half_of(0x7ff0000000000001), 0x7c01);
}

TEST(Strip, TakesOffBlanksAtBothEnds) {
  EXPECT_EQ(strip("  a b\t", " \t"), "a b");
  EXPECT_EQ(strip("a b", " \t"), "a b");
  EXPECT_EQ(strip(" \t ", " \t"), "");
  EXPECT_EQ(strip("", " \t"), "");
}

}  // namespace
}  // namespace npyfs
