// SPDX-License-Identifier: Apache-2.0
//
// Attributes: JSON in and out as Python has it, and the pickle byte by byte.

#include "formats/bytes/value.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "formats/bytes/error.h"

namespace npyfs {
namespace {

using std::string_literals::operator""s;

template <typename T>
T parsed(std::string_view text) {
  return std::get<T>(parse_json(text).v);
}

std::string fault(std::string_view text) {
  try {
    parse_json(text);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
    return error.what();
  }
  return "none";
}

std::string nested(std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); }

// The pickle of `value`, without the array around it.
std::string pickled(Value value) {
  const std::string empty = print_attrs_npy({});
  const std::string full = print_attrs_npy({{"k", std::move(value)}});
  const std::size_t head = empty.size() - 5;  // "}atb."
  EXPECT_EQ(full.substr(0, head), empty.substr(0, head));
  const std::string before = "}(X\1\0\0\0k"s;
  EXPECT_EQ(full.substr(head, before.size()), before);
  EXPECT_EQ(full.substr(full.size() - 5), "uatb.");
  return full.substr(head + before.size(), full.size() - head - before.size() - 5);
}

TEST(SetValue, AddsOrReplacesInPlace) {
  Dict dict;
  set_value(dict, "a", {std::int64_t{1}});
  set_value(dict, "b", {true});
  set_value(dict, "a", {"x"s});
  ASSERT_EQ(dict.size(), 2U);
  EXPECT_EQ(dict[0].name, "a");
  EXPECT_EQ(std::get<std::string>(dict[0].value.v), "x");
  EXPECT_EQ(dict[1].name, "b");
}

TEST(ParseJson, KnowsEveryKind) {
  EXPECT_TRUE(std::holds_alternative<std::monostate>(parse_json(" null ").v));
  EXPECT_TRUE(parsed<bool>("true"));
  EXPECT_EQ(parsed<std::int64_t>("-0"), 0);
  EXPECT_EQ(parsed<std::int64_t>("-9223372036854775808"), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(parsed<std::int64_t>("9223372036854775807"), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(parsed<std::uint64_t>("9223372036854775808"), std::uint64_t{1} << 63);
  EXPECT_EQ(parsed<std::uint64_t>("18446744073709551615"), ~std::uint64_t{0});
  EXPECT_EQ(parsed<BigInt>("18446744073709551616").decimal, "18446744073709551616");
  EXPECT_EQ(parsed<BigInt>("-9223372036854775809").decimal, "-9223372036854775809");
  EXPECT_EQ(parsed<double>("1.0"), 1.0);
  EXPECT_EQ(parsed<double>("1e5"), 1e5);
  EXPECT_EQ(parsed<double>("0.1"), 0.1);
  EXPECT_EQ(parsed<double>("5e-324"), 5e-324);
  EXPECT_EQ(parsed<double>("1e-999"), 0.0);
  EXPECT_TRUE(std::signbit(parsed<double>("-0.0")));
  EXPECT_TRUE(std::isnan(parsed<double>("NaN")));
  EXPECT_EQ(parsed<double>("Infinity"), std::numeric_limits<double>::infinity());
  EXPECT_EQ(parsed<double>("-Infinity"), -std::numeric_limits<double>::infinity());
  EXPECT_EQ(parsed<std::string>(R"("a\u0000\ud83c\udfb5\n")"), "a\0\xf0\x9f\x8e\xb5\n"s);
  EXPECT_EQ(parsed<List>("[]").size(), 0U);
  EXPECT_EQ(parsed<List>("[1, [2, {}]]").size(), 2U);
}

// As CPython 3.11 reads them.
TEST(ParseJson, TakesWhatPythonTakes) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(parsed<double>("1e400"), kInfinity);
  EXPECT_EQ(parsed<double>("-1.5E+999999999999"), -kInfinity);
  EXPECT_EQ(parsed<double>("1" + std::string(400, '0') + ".0"), kInfinity);
  EXPECT_EQ(parsed<double>("1" + std::string(310, '0') + "e-5"), 1e305);
  EXPECT_EQ(parsed<double>("0." + std::string(400, '0') + "1e401"), 1.0);
  EXPECT_EQ(parsed<std::string>(R"("\ud800")"), "\xed\xa0\x80");
  EXPECT_EQ(parsed<std::string>(R"("a\udc00b")"),
            "a\xed\xb0\x80"
            "b");
  EXPECT_EQ(parsed<std::string>(R"("\ud800\ud83c\udfb5\\ud800")"),
            "\xed\xa0\x80\xf0\x9f\x8e\xb5\\ud800");
  EXPECT_EQ(parsed<std::string>(R"("\ud800\u0041 1e400")"),
            "\xed\xa0\x80"
            "A 1e400");
  const std::string digits(4000, '7');
  EXPECT_EQ(parsed<std::string>("-" + digits), "-" + digits);
  EXPECT_EQ(
      print_json(parse_json(R"({"a": 1e400, "b": "\ud800", "\udfff": [1.25, 12, "h\u00e9\n\""]})")),
      "{\n  \"a\": null,\n  \"b\": \"\xef\xbf\xbd\",\n  \"\xef\xbf\xbd\": [\n    1.25,\n    12,\n"
      "    \"h\xc3\xa9\\n\\\"\"\n  ]\n}\n");
}

TEST(ParseJson, KeepsTheLastOfEqualKeysInTheFirstPlace) {
  EXPECT_EQ(print_json(parse_json(R"({"a": 1, "b": {"c": 2}, "a": [3], "d": 4, "b": 5})")),
            "{\n  \"a\": [\n    3\n  ],\n  \"b\": 5,\n  \"d\": 4\n}\n");
}

TEST(ParseJson, BoundsTheDepth) {
  EXPECT_EQ(fault(nested(512)), "none");
  EXPECT_EQ(fault(nested(513)), "JSON at byte 512: nested deeper than 512");
  EXPECT_EQ(fault(std::string(1'000'000, '[')), "JSON at byte 512: nested deeper than 512");
}

TEST(ParseJson, SaysWhereTheFaultIs) {
  EXPECT_EQ(fault(""), "JSON at byte 0: The document is empty.");
  EXPECT_EQ(fault("{\"a\": x}"), "JSON at byte 6: Invalid value.");
  EXPECT_EQ(fault("1\0 "s), "JSON at byte 1: a NUL byte after the value");
  for (const char* const text :
       {"1 2", "[1, 2", "[1,]", "{1: 2}", "\"\xff\"", "\"\n\"", "01", "1.", "+1", ".5", "nul",
        "\"\\x\"", "\"\\ud80\"", "'a'", "1e999.", "1e", "[1e999", "\"\\ud800", "\"\\ud800\xff\""}) {
    EXPECT_TRUE(fault(text).starts_with("JSON at byte ")) << text;
  }
}

TEST(PrintJson, PrintsAsPythonDoes) {
  const auto printed = [](Value value) {
    const std::string text = print_json(value);
    return text.substr(0, text.size() - 1);
  };
  EXPECT_EQ(printed({}), "null");
  EXPECT_EQ(printed({false}), "false");
  EXPECT_EQ(printed({std::int64_t{-5}}), "-5");
  EXPECT_EQ(printed({~std::uint64_t{0}}), "18446744073709551615");
  EXPECT_EQ(printed({BigInt{"-18446744073709551616"}}), "-18446744073709551616");
  EXPECT_EQ(printed({1.0}), "1.0");
  EXPECT_EQ(printed({-0.0}), "-0.0");
  EXPECT_EQ(printed({0.1}), "0.1");
  EXPECT_EQ(printed({1e15}), "1000000000000000.0");
  EXPECT_EQ(printed({1e16}), "1e+16");
  EXPECT_EQ(printed({1e-4}), "0.0001");
  EXPECT_EQ(printed({1e-5}), "1e-05");
  EXPECT_EQ(printed({5e-324}), "5e-324");
  EXPECT_EQ(printed({std::numeric_limits<double>::quiet_NaN()}), "null");
  EXPECT_EQ(printed({-std::numeric_limits<double>::infinity()}), "null");
  EXPECT_EQ(printed({"\"\\\n\t\1\x7f s\xc3\xafne"s}), "\"\\\"\\\\\\n\\t\\u0001\x7f s\xc3\xafne\"");
  EXPECT_EQ(printed({Bytes{"a\xff\xe4\xbd z"}}), "\"a\xef\xbf\xbd\xef\xbf\xbd z\"");
  EXPECT_EQ(printed({List()}), "[]");
  EXPECT_EQ(printed({Dict()}), "{}");
  EXPECT_EQ(printed({Dict{{"a", {List{{}, {Dict()}}}}, {"b", {true}}}}),
            "{\n  \"a\": [\n    null,\n    {}\n  ],\n  \"b\": true\n}");
}

TEST(PrintAttrsNpy, IsAZeroDimensionalObjectArray) {
  const std::string expected =
      "\x93NUMPY\x01\0v\0{'descr': '|O', 'fortran_order': False, 'shape': (), }"s +
      std::string(63, ' ') +
      "\n\x80\x03"
      "cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\0\x85"
      "C\x01"
      "b\x87R(K\x01)cnumpy\ndtype\nX\x02\0\0\0O8\x89\x88\x87R(K\x03X\x01\0\0\0|NNNJ\xff\xff\xff\xff"
      "J\xff\xff\xff\xffK?tb\x89]}atb."s;
  EXPECT_EQ(print_attrs_npy({}), expected);
  EXPECT_EQ(expected[127], '\n');
}

TEST(PrintAttrsNpy, PicklesEveryKind) {
  EXPECT_EQ(pickled({}), "N");
  EXPECT_EQ(pickled({true}), "\x88");
  EXPECT_EQ(pickled({false}), "\x89");
  EXPECT_EQ(pickled({1.5}), "G\x3f\xf8\0\0\0\0\0\0"s);
  EXPECT_EQ(pickled({"\xc3\xaf"s}), "X\2\0\0\0\xc3\xaf"s);
  // A surrogate stays, as Python's surrogatepass reads it; what is no UTF-8 would not load at all.
  EXPECT_EQ(pickled({"\xed\xa0\x80\xff"s}), "X\6\0\0\0\xed\xa0\x80\xef\xbf\xbd"s);
  EXPECT_EQ(pickled({Bytes{"\xff"}}), "C\1\xff");
  EXPECT_EQ(pickled({Bytes{std::string(256, 'y')}}), "B\0\1\0\0"s + std::string(256, 'y'));
  EXPECT_EQ(pickled({List()}), "]");
  EXPECT_EQ(pickled({List{{}, {true}}}),
            "](N\x88"
            "e");
  EXPECT_EQ(pickled({Dict()}), "}");
}

TEST(PrintAttrsNpy, PicklesIntegersInTheLeastBytes) {
  const auto integer = [](std::int64_t number) { return pickled({number}); };
  EXPECT_EQ(integer(0), "K\0"s);
  EXPECT_EQ(integer(255), "K\xff");
  EXPECT_EQ(integer(256), "M\0\1"s);
  EXPECT_EQ(integer(65536), "J\0\0\1\0"s);
  EXPECT_EQ(integer(-1), "J\xff\xff\xff\xff");
  EXPECT_EQ(integer(2147483648), "\x8a\5\0\0\0\x80\0"s);
  EXPECT_EQ(integer(-2147483649), "\x8a\5\xff\xff\xff\x7f\xff"s);
  EXPECT_EQ(integer(std::numeric_limits<std::int64_t>::min()), "\x8a\x08\0\0\0\0\0\0\0\x80"s);
  EXPECT_EQ(pickled({std::uint64_t{7}}), "K\7");
  EXPECT_EQ(pickled({~std::uint64_t{0}}), "\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\0"s);
  EXPECT_EQ(pickled({BigInt{"-18446744073709551616"}}), "\x8a\x09\0\0\0\0\0\0\0\0\xff"s);
  EXPECT_EQ(pickled({BigInt{"-9223372036854775808"}}), "\x8a\x08\0\0\0\0\0\0\0\x80"s);
  EXPECT_EQ(pickled({BigInt{"0"}}), "\x8a\1\0"s);
  EXPECT_EQ(pickled({BigInt{"-1"}}), "\x8a\1\xff");
  // 10^700 has 2326 bits: 291 bytes, LONG4.
  EXPECT_EQ(pickled({BigInt{"1" + std::string(700, '0')}}).substr(0, 5), "\x8b\x23\1\0\0"s);
}

}  // namespace
}  // namespace npyfs
