// SPDX-License-Identifier: Apache-2.0
//
// UTF-8 as Python has it. Expected values were computed by CPython 3.11: bytes.decode with
// errors='replace' and errors='surrogateescape'.

#include "formats/bytes/utf8.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace npyfs {
namespace {

using std::string_literals::operator""s;
using Points = std::vector<char32_t>;

// One U+FFFD for each call that finds no code point.
Points replaced(std::string_view text) {
  Points points;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t before = at;
    const auto point = next_code_point(text, at);
    EXPECT_GT(at, before);
    EXPECT_LE(at, text.size());
    points.push_back(point.value_or(0xfffd));
  }
  return points;
}

Points escaped(const std::string& text) {
  std::vector<std::byte> out(utf8_length(text) * 4);
  write_utf32(text, out);
  Points points;
  for (std::size_t i = 0; i < out.size(); i += sizeof(char32_t)) {
    std::memcpy(&points.emplace_back(), &out[i], sizeof(char32_t));
  }
  return points;
}

TEST(Utf8, ReadsAndWritesEveryCodePoint) {
  for (char32_t point = 0; point <= 0x10ffff; ++point) {
    std::string text;
    append_utf8(text, point);
    std::size_t at = 0;
    ASSERT_EQ(next_code_point(text, at), point);
    ASSERT_EQ(at, text.size());
    ASSERT_EQ(text.size(), point < 0x80 ? 1U : point < 0x800 ? 2U : point < 0x10000 ? 3U : 4U);
    ASSERT_EQ(is_utf8(text), !is_surrogate(point)) << static_cast<std::uint32_t>(point);
  }
}

TEST(Utf8, WritesKnownBytes) {
  std::string text;
  for (const char32_t point : {U'A', U'\u00e9', U'\u20ac', U'\U0001f600'}) {
    append_utf8(text, point);
  }
  EXPECT_EQ(text, "A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
}

TEST(Utf8, ReplacesAsPythonDoes) {
  constexpr char32_t kR = 0xfffd;
  const std::pair<std::string, Points> cases[] = {
      {"", {}},
      {"a\x80z", {'a', kR, 'z'}},
      {"\xc0\xaf", {kR, kR}},          // overlong
      {"\xe0\x80\x80", {kR, kR, kR}},  // overlong
      {"\xe0\x9f\xbf", {kR, kR, kR}},  // overlong
      {"\xf0\x8f\xbf\xbf", {kR, kR, kR, kR}},
      {"\xf4\x90\x80\x80", {kR, kR, kR, kR}},  // beyond U+10FFFF
      {"\xf5\x80\x80\x80", {kR, kR, kR, kR}},
      {"\xff", {kR}},
      {"\xe2\x82", {kR}},  // cut: one for the longest valid prefix
      {"\xe2\x82z", {kR, 'z'}},
      {"\xf0\x9f\x98", {kR}},
      {"\xf0\x9f\x98\xe2\x82\xac", {kR, 0x20ac}},
      {"\xc3", {kR}},
      {"\xc3\xc3\xa9", {kR, 0xe9}},
      {"a\0b"s, {'a', 0, 'b'}},
  };
  for (const auto& [text, points] : cases) {
    EXPECT_EQ(replaced(text), points) << ::testing::PrintToString(text);
  }
}

TEST(Utf8, EscapesAsPythonDoes) {
  const std::pair<std::string, Points> cases[] = {
      {"", {}},
      {"a\xc3\xa9\xf0\x9f\x98\x80", {'a', 0xe9, 0x1f600}},
      {"a\x80z", {'a', 0xdc80, 'z'}},
      {"\xe2\x82", {0xdce2, 0xdc82}},
      {"\xe2\x82z", {0xdce2, 0xdc82, 'z'}},
      {"\xf0\x9f\x98\xe2\x82\xac", {0xdcf0, 0xdc9f, 0xdc98, 0x20ac}},
      {"\xed\xa0\x80", {0xdced, 0xdca0, 0xdc80}},  // a coded surrogate
      {"\xed\x9f\xbf", {0xd7ff}},
      {"\xff", {0xdcff}},
  };
  for (const auto& [text, points] : cases) {
    EXPECT_EQ(escaped(text), points) << ::testing::PrintToString(text);
    EXPECT_EQ(utf8_length(text), points.size());
  }
}

TEST(Utf8, TellsWhatIsUtf8) {
  EXPECT_TRUE(is_utf8(""));
  EXPECT_TRUE(is_utf8("a\xc3\xa9\0\xe2\x82\xac"s));
  EXPECT_FALSE(is_utf8("\xc3"));
  EXPECT_FALSE(is_utf8("a\xff"));
  EXPECT_FALSE(is_utf8("\xed\xa0\x80"));
}

TEST(Utf8, WritesUtf32IntoTheRoomThereIs) {
  std::vector<std::byte> out(12, std::byte{0x55});
  write_utf32("\xe2\x82\xac", out);
  const unsigned char padded[12] = {0xac, 0x20};
  EXPECT_EQ(std::memcmp(out.data(), padded, 12), 0) << "zeroes behind";
  write_utf32("abcdef", out);
  const unsigned char cut[12] = {'a', 0, 0, 0, 'b', 0, 0, 0, 'c'};
  EXPECT_EQ(std::memcmp(out.data(), cut, 12), 0) << "what does not fit is dropped";
}

}  // namespace
}  // namespace npyfs
