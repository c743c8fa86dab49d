// SPDX-License-Identifier: Apache-2.0
//
// The reader of pickles: what it builds, what it refuses to call, and what it does not fall for.

#include "formats/payloads/pickle.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "formats/bytes/error.h"
#include "formats/payloads/pickle_item.h"

namespace npyfs {
namespace {

using std::string_literals::operator""s;
using Strings = std::vector<std::string>;

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

std::string json(const std::string& pickle, Strings* dropped = nullptr) {
  std::string text = print_json(read_pickle(bytes_of(pickle), "p", [&](const std::string& what) {
    if (dropped != nullptr) {
      dropped->push_back(what);
    }
  }));
  text.pop_back();
  return text;
}

ErrorKind kind_of(const std::string& pickle) {
  try {
    json(pickle);
  } catch (const Error& error) {
    return error.kind();
  }
  ADD_FAILURE() << "it was read";
  return ErrorKind::kUsage;
}

std::string int32(std::uint32_t value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

TEST(ReadPickle, KnowsPlainValues) {
  EXPECT_EQ(json("N."), "null");
  EXPECT_EQ(json("\x80\x02\x88."), "true");
  EXPECT_EQ(json("I01\n."), "true");
  EXPECT_EQ(json("I1\n."), "1");
  EXPECT_EQ(json("J\xfe\xff\xff\xff."), "-2");
  EXPECT_EQ(json("\x8a\x01\xff."), "-1");
  EXPECT_EQ(json("\x8a\x00."s), "0");
  EXPECT_EQ(json("\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00\x01."s), "18446744073709551616");
  EXPECT_EQ(json("\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00\xff."s), "-18446744073709551616");
  EXPECT_EQ(json("L-123456789012345678901L\n."), "-123456789012345678901");
  EXPECT_EQ(json("F1.5\n."), "1.5");
  EXPECT_EQ(json("G\x3f\xf8\x00\x00\x00\x00\x00\x00."s), "1.5");
  EXPECT_EQ(json("S'a\\x41\\n\\''\n."), "\"aA\\n'\"");
  EXPECT_EQ(json("V\\u4e16\xe9\n."), "\"\xe4\xb8\x96\xc3\xa9\"");
  EXPECT_EQ(json("(lp0\nI1\naI2\na."), "[\n  1,\n  2\n]");
  EXPECT_EQ(json("(dp0\nS'k'\nI3\ns."), "{\n  \"k\": 3\n}");
  EXPECT_EQ(json("(I1\n(I2\nt0I3\n1I4\n."), "4");  // POP and POP_MARK
}

TEST(ReadPickle, OfEqualKeysTheLastCounts) {
  EXPECT_EQ(json("(dS'k'\nI3\nsS'j'\nI1\nsS'k'\nI4\ns."), "{\n  \"k\": 4,\n  \"j\": 1\n}");
}

TEST(ReadPickle, DropsByNameWhatNeedsCode) {
  Strings dropped;
  EXPECT_EQ(json("}(\x8c\x01"
                 "aK\x01\x8c\x01"
                 "bcposix\nsystem\n(S'ls'\ntR\x8c\x01"
                 "c](K\x02"
                 "cos\nsep\neu.",
                 &dropped),
            "{\n  \"a\": 1,\n  \"c\": [\n    2\n  ]\n}");
  EXPECT_EQ(dropped, (Strings{"b is an object that only code can make",
                              "c[1] is an object that only code can make"}));
  EXPECT_EQ(kind_of("cposix\nsystem\n(S'ls'\ntR."), ErrorKind::kUnsupported);
}

TEST(ReadPickle, NamesWhatWouldHaveBeenCalled) {
  const std::string evil = "cposix\nsystem\n(S'ls'\ntR.";
  MemoryBytes pickle(bytes_of(evil), "p");
  const PickleTree tree = parse_pickle(pickle);
  EXPECT_EQ(tree.unknown(), "posix.system");
}

TEST(ReadPickle, RefusesWhatIsNoPickle) {
  for (const std::string& bad : {""s,
                                 "."s,
                                 "K"s,
                                 "N"s,
                                 "a."s,
                                 "(."s,
                                 "t."s,
                                 "h\x00."s,
                                 "R."s,
                                 "NN"s,
                                 "\xff."s,
                                 "b."s,
                                 "I\n."s,
                                 "Ix\n."s,
                                 "Fx\n."s,
                                 "S'a\n."s,
                                 "X\xff\xff\xff\xff."s,
                                 "NNs."s,
                                 "(Nd."s,
                                 "]Na"s,
                                 "Vabc"s,
                                 "\x8e\xff\xff\xff\xff\xff\xff\xff\xff."s,
                                 "\x8c\x05"s
                                 "abc."s,
                                 "V\\u12\n."s}) {
    EXPECT_EQ(kind_of(bad), ErrorKind::kCorrupt) << bad;
  }
  EXPECT_EQ(kind_of("\x80\x06N."), ErrorKind::kUnsupported);
  EXPECT_EQ(kind_of("\x8b" + int32(2000) + std::string(2000, 'x') + "."), ErrorKind::kUnsupported);
  EXPECT_EQ(kind_of("Nr\xff\xff\xff\x7f."), ErrorKind::kUnsupported);  // a memo of 2^31
}

TEST(ReadPickle, AListThatHoldsItselfEnds) {
  Strings dropped;
  const std::string text = json(
      "]q\x00h\x00"s
      "a."s,
      &dropped);
  EXPECT_LT(text.size(), 1U << 20);
  EXPECT_EQ(dropped.size(), 1U);
}

// Thirty lists, each of the one before ten times: 10^30 values in 900 bytes.
TEST(ReadPickle, AMemoBombIsDropped) {
  std::string bomb =
      "](K\x01K\x01"s
      "eq\x00"s;
  for (char i = 0; i < 30; ++i) {
    bomb += "](";
    for (int k = 0; k < 10; ++k) {
      bomb += "h"s + i;
    }
    bomb += "eq"s + static_cast<char>(i + 1);
  }
  bomb += ".";
  Strings dropped;
  json(bomb, &dropped);
  EXPECT_FALSE(dropped.empty());
  MemoryBytes pickle(bytes_of(bomb), "p");
  const PickleTree tree = parse_pickle(pickle);
  EXPECT_THROW(describe_pickle(tree, tree.root(), pickle), Error);
}

TEST(ReadPickle, DeepNestingIsDropped) {
  const std::string deep = std::string(100000, '(') + "N" + std::string(100000, 'l') + ".";
  Strings dropped;
  json(deep, &dropped);
  EXPECT_EQ(dropped.size(), 1U);
  MemoryBytes pickle(bytes_of(deep), "p");
  const PickleTree tree = parse_pickle(pickle);
  EXPECT_THROW(describe_pickle(tree, tree.root(), pickle), Error);
}

TEST(ReadPickle, ObjectsAreBounded) {
  EXPECT_EQ(kind_of(std::string(std::size_t{5} << 20, ']') + "."), ErrorKind::kUnsupported);
  EXPECT_EQ(kind_of("N" + std::string(std::size_t{40} << 20, '2') + "."), ErrorKind::kUnsupported);
}

// Each step of five bytes claims 65,537 entries.
TEST(ReadPickle, AMemoThatJumpsIsBounded) {
  std::string stepped = "]";
  for (std::uint32_t i = 1; i <= 1000; ++i) {
    stepped += "r" + int32(i * 65536);
  }
  EXPECT_EQ(kind_of(stepped + "."), ErrorKind::kUnsupported);
  // One gap is no trap.
  EXPECT_EQ(json("]r" + int32(65535) + "j" + int32(65535) + "."), "[]");
}

// The pickle that is read is not the one that was described.
void expect_changed(const std::string& described, const std::string& read) {
  MemoryBytes pickle(bytes_of(described), "p");
  const PickleTree tree = parse_pickle(pickle);
  const PickleItem item = describe_pickle(tree, tree.root(), pickle);
  std::vector<std::byte> out(*element_count(item.shape) * item.dtype.itemsize);
  build_item(tree, tree.root(), pickle, item.dtype, out);
  MemoryBytes other(bytes_of(read), "p");
  const PickleTree other_tree = parse_pickle(other);
  try {
    build_item(other_tree, other_tree.root(), other, item.dtype, out);
    ADD_FAILURE() << "it was built of " << read;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kCorrupt) << error.what();
  }
}

TEST(BuildItem, OfAnotherPickleIsRefused) {
  const std::string text = "X\x02\x00\x00\x00hi"s;
  const std::string texts = "]("s + text + text + "e.";
  expect_changed(texts, "](K\x7fK\x7f"s + "e.");  // a number is no place of a text
  expect_changed(texts, "](]]e.");
  expect_changed(texts, "]("s + text + "e.");                             // shorter
  expect_changed(texts, "]("s + text + text + text + "e.");               // longer
  expect_changed(texts, "](X\x03\x00\x00\x00hiiX\x02\x00\x00\x00hie."s);  // wider
  expect_changed("](K\x01K\x02"s + "e.", texts);
  expect_changed("](K\x01K\x02"s + "e.", "](K\x01NN"s + "e.");
  expect_changed("](\x88\x89"s + "e.", "](K\x01K\x02"s + "e.");
  expect_changed("](K\x01K\x02"s + "e.", "](G\x3f\xf0\x00\x00\x00\x00\x00\x00K\x02"s + "e.");
  expect_changed(texts, "}.");
  expect_changed(texts, "N.");
}

// A text of 64 KiB in a memo, ten thousand times in a list; and one that widens ten thousand
// others.
TEST(DescribePickle, TextsThatTheMemoRepeatsAreBounded) {
  const std::string longest = "X" + int32(65536) + std::string(65536, 'a') + "q\x01"s;
  for (const std::string& more : {"h\x01"s, "X\x01\x00\x00\x00z"s}) {
    std::string pickle = "](" + longest;
    for (int i = 0; i < 10000; ++i) {
      pickle += more;
    }
    pickle += "e.";
    MemoryBytes payload(bytes_of(pickle), "p");
    const PickleTree tree = parse_pickle(payload);
    try {
      describe_pickle(tree, tree.root(), payload);
      ADD_FAILURE();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kUnsupported) << error.what();
    }
  }
}

TEST(ReadAttrs, ReadsWhatIsWritten) {
  const std::string text =
      "{\n  \"a\": [\n    1,\n    -2.5,\n    null,\n    true\n  ],\n  \"b\": {\n    \"c\": "
      "\"\xc3\xa9\",\n    \"big\": 123456789012345678901234567890\n  }\n}\n";
  const Value value = parse_json(text);
  const std::string file = print_attrs_npy(std::get<Dict>(value.v));
  const Value read = read_attrs_npy(bytes_of(file), "attrs.npy",
                                    [](const std::string& what) { ADD_FAILURE() << what; });
  EXPECT_EQ(print_json(read), text);
  for (std::size_t n = 0; n < file.size(); ++n) {
    EXPECT_THROW(read_attrs_npy(bytes_of(file.substr(0, n)), "a", [](const std::string&) {}), Error)
        << n;
  }
}

}  // namespace
}  // namespace npyfs
