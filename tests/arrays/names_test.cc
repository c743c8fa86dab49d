// SPDX-License-Identifier: Apache-2.0
//
// Names that come from data and become names of files.

#include "formats/arrays/names.h"

#include <gtest/gtest.h>

#include <random>

#include "formats/bytes/utf8.h"

namespace npyfs {
namespace {

using std::string_literals::operator""s;

TEST(EscapeName, TouchesOnlyWhatNoFileNameMayHold) {
  const std::pair<std::string, std::string> cases[] = {
      {"plain.name", "plain.name"},
      {"a/b//c", "a%2Fb%2F%2Fc"},
      {"a\0b"s, "a%00b"},
      {".", "%2E"},
      {"..", "%2E%2E"},
      {"...", "..."},
      {".hidden", ".hidden"},
      {"", "%"},
      {"100%", "100%"},
      {"\xff\n", "%FF\n"},
      {"\xc3\xa9", "\xc3\xa9"},       // é
      {"a\xe2\x82z", "a%E2%82z"},     // a cut €
      {"\xed\xa0\x80", "%ED%A0%80"},  // a surrogate is no UTF-8
      {"/", "%2F"},
  };
  for (const auto& [name, escaped] : cases) {
    EXPECT_EQ(escape_name(name), escaped);
  }
}

TEST(EscapeName, GivesNamesThatAFileMayHave) {
  constexpr char kLetters[] = {'/', '\0', '.', 'a', '\xc3', '~'};
  std::mt19937 random(1);
  for (int i = 0; i < 20'000; ++i) {
    std::string name;
    for (std::size_t n = random() % 6; n > 0; --n) {
      name += kLetters[random() % sizeof kLetters];
    }
    const std::string escaped = escape_name(name);
    ASSERT_TRUE(is_utf8(escaped));
    ASSERT_EQ(escape_name(escaped), escaped);
    ASSERT_EQ(escaped.find_first_of("/\0"s), std::string::npos);
    ASSERT_NE(escaped, ".");
    ASSERT_NE(escaped, "..");
    ASSERT_FALSE(escaped.empty());
  }
}

TEST(ShortenName, LeavesWhatFits) {
  EXPECT_EQ(shorten_name("", 4), "");
  EXPECT_EQ(shorten_name(std::string(251, 'a'), 4), std::string(251, 'a'));
  EXPECT_EQ(shorten_name(std::string(255, 'a'), 0), std::string(255, 'a'));
}

TEST(ShortenName, EndsInTheHashOfTheWholeName) {
  const std::string name(252, 'a');
  const std::string shortened = shorten_name(name, 4);
  ASSERT_EQ(shortened.size(), 217U);
  EXPECT_EQ(shortened.substr(0, 201), std::string(200, 'a') + "~");
  EXPECT_EQ(shortened.find_first_not_of("0123456789abcdef", 201), std::string::npos);
  EXPECT_NE(shorten_name(std::string(251, 'a') + "b", 4), shortened);
  EXPECT_NE(shorten_name(std::string(253, 'a'), 4), shortened);
}

// FNV-1a in 64 bits, computed with Python 3.11 by the algorithm's definition.
TEST(ShortenName, HasAHashThatStaysTheSame) {
  EXPECT_EQ(shorten_name(std::string(300, 'x'), 0), std::string(200, 'x') + "~e78ddf9f1ba85555");
}

}  // namespace
}  // namespace npyfs
