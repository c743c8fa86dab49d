// SPDX-License-Identifier: Apache-2.0

#include "cli/brace.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/cli/scratch_folder.h"

namespace npyfs {
namespace {

using Texts = std::vector<std::string>;

TEST(Braces, CountAndPad) {
  EXPECT_EQ(expand_braces("a{0..3}b"), (Texts{"a0b", "a1b", "a2b", "a3b"}));
  EXPECT_EQ(expand_braces("{008..011}"), (Texts{"008", "009", "010", "011"}));
  EXPECT_EQ(expand_braces("{8..011}"), (Texts{"008", "009", "010", "011"}));
  EXPECT_EQ(expand_braces("{9..11}"), (Texts{"9", "10", "11"}));
  EXPECT_EQ(expand_braces("{5..5}"), (Texts{"5"}));
  EXPECT_EQ(expand_braces("{-01..1}"), (Texts{"-01", "000", "001"}));
  EXPECT_EQ(expand_braces("{0..0}"), (Texts{"0"}));
}

TEST(Braces, StepAndCountDown) {
  EXPECT_EQ(expand_braces("{1..9..4}"), (Texts{"1", "5", "9"}));
  EXPECT_EQ(expand_braces("{0..10..4}"), (Texts{"0", "4", "8"}));
  EXPECT_EQ(expand_braces("{3..1}"), (Texts{"3", "2", "1"}));
  EXPECT_EQ(expand_braces("{10..1..-5}"), (Texts{"10", "5"}));
  EXPECT_EQ(expand_braces("{1..3..0}"), (Texts{"1", "2", "3"}));
  EXPECT_EQ(expand_braces("{-9223372036854775808..-9223372036854775807}"),
            (Texts{"-9223372036854775808", "-9223372036854775807"}));
}

TEST(Braces, Letters) {
  EXPECT_EQ(expand_braces("{a..e..2}"), (Texts{"a", "c", "e"}));
  EXPECT_EQ(expand_braces("{C..A}"), (Texts{"C", "B", "A"}));
  EXPECT_EQ(expand_braces("{a..C}"), (Texts{"{a..C}"}));
}

TEST(Braces, ListsProductsAndNesting) {
  EXPECT_EQ(expand_braces("x{a,b,}y"), (Texts{"xay", "xby", "xy"}));
  EXPECT_EQ(expand_braces("{0..1}{a,b}"), (Texts{"0a", "0b", "1a", "1b"}));
  EXPECT_EQ(expand_braces("{a,b{1..2}}"), (Texts{"a", "b1", "b2"}));
  EXPECT_EQ(expand_braces("{a{1,2},{x,y}}"), (Texts{"a1", "a2", "x", "y"}));
}

TEST(Braces, Literal) {
  EXPECT_EQ(expand_braces(""), (Texts{""}));
  EXPECT_EQ(expand_braces("plain"), (Texts{"plain"}));
  EXPECT_EQ(expand_braces("a{}b"), (Texts{"a{}b"}));
  EXPECT_EQ(expand_braces("a{x}b"), (Texts{"a{x}b"}));
  EXPECT_EQ(expand_braces("{1..x}"), (Texts{"{1..x}"}));
  EXPECT_EQ(expand_braces("{..}"), (Texts{"{..}"}));
  EXPECT_EQ(expand_braces("{x{1,2}}"), (Texts{"{x1}", "{x2}"}));
  EXPECT_EQ(expand_braces("a,b..c"), (Texts{"a,b..c"}));
}

TEST(Braces, Refused) {
  for (const char* pattern : {"{", "}", "a{1..2", "a}b{", "{{1,2}", "{0..1000000}",
                              "{0..9999}{0..9999}", "{0..9223372036854775807}"}) {
    expect_says(error_of(ErrorKind::kUsage, [&] { expand_braces(pattern); }), {"'"});
  }
  error_of(ErrorKind::kUsage,
           [] { expand_braces(std::string(1000, '{') + std::string(1000, '}')); });
}

}  // namespace
}  // namespace npyfs
