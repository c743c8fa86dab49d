// SPDX-License-Identifier: Apache-2.0

#include "formats/bytes/fault_tally.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace npyfs {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

std::vector<std::string> told(const FaultTally& tally) {
  std::vector<std::string> lines;
  tally.tell([&](const std::string& text) { lines.push_back(text); });
  return lines;
}

TEST(FaultTally, TellsTheFirstAndTheCountOfEachKind) {
  FaultTally tally("lines", "left out");
  EXPECT_THAT(told(tally), ElementsAre());
  tally.add(corrupt_at("a.ark", 12, "the row count is -7, expected 0 or more"));
  tally.add(file_error(ErrorKind::kNotFound, "b/1.wav", "cannot open: No such file"));
  tally.add(
      corrupt_at("c.ark", 99, "the row count is 123, expected 0 or more").wrapped("x: ", " y"));
  tally.add(file_error(ErrorKind::kCorrupt, "d", "key 'a b' is longer than key 'c'"));
  tally.add(file_error(ErrorKind::kCorrupt, "d", "key 'e' is longer than key 'f 1'"));
  tally.add(file_error(ErrorKind::kCorrupt, "d", "key 'e' is longer than key 'f 1'"));
  EXPECT_EQ(tally.count(), 6U);
  EXPECT_THAT(
      told(tally),
      ElementsAre("a.ark at byte 12: the row count is -7, expected 0 or more; left out (and "
                  "1 more lines)",
                  "b/1.wav: cannot open: No such file; left out",
                  "d: key 'a b' is longer than key 'c'; left out (and 2 more lines)"));
}

TEST(FaultTally, KeysMakeNoKinds) {
  FaultTally tally("records");
  for (const std::string key : {"a", "b c", "d)e", "(key f)", "", "g"}) {
    tally.add(corrupt_at("f", 1, "record 3 (key " + key + ") is 4 bytes and does not match"));
  }
  tally.add(corrupt_at("f", 1, "record 3 (key unclosed"));
  tally.add(corrupt_at("f", 1, "record 3 (key "));
  EXPECT_THAT(told(tally),
              ElementsAre("f at byte 1: record 3 (key a) is 4 bytes and does not match "
                          "(and 5 more records)",
                          "f at byte 1: record 3 (key unclosed (and 1 more records)"));
}

TEST(FaultTally, NumbersMakeNoKinds) {
  FaultTally tally("chunks");
  for (const std::string sum : {"0df7e3b7", "d5e3c6ca", "0xdeadbeef", "-12", "7", "faded", "x7"}) {
    tally.add(corrupt_at("f", 1, "the sum is " + sum + " here"));
  }
  EXPECT_THAT(told(tally),
              ElementsAre("f at byte 1: the sum is 0df7e3b7 here (and 4 more chunks)",
                          "f at byte 1: the sum is faded here", "f at byte 1: the sum is x7 here"));
}

TEST(FaultTally, WhatIsQuotedMakesNoKinds) {
  FaultTally tally("lines");
  for (const std::string line : {"a", "it's", "", "b 'c"}) {
    tally.add(corrupt_at("f", 1, "line 3 is \"" + line + "\", expected a key"));
  }
  EXPECT_THAT(told(tally),
              ElementsAre("f at byte 1: line 3 is \"a\", expected a key (and 3 more lines)"));
}

TEST(FaultTally, TheFirstIsThatOfTheLeastOrder) {
  FaultTally tally("lines");
  tally.add("a", "a at 9", 9);
  tally.add("b", "b at 5", 5);
  tally.add("a", "a at 3", 3);
  tally.add("a", "a at 4", 4);
  EXPECT_THAT(told(tally), ElementsAre("a at 3 (and 2 more lines)", "b at 5"));
}

TEST(FaultTally, KeepsNoMoreTextsThanItHasRoomFor) {
  FaultTally tally("records");
  for (std::size_t i = 0; i < 3 * FaultTally::kMostKinds; ++i) {
    tally.add(std::string(i + 1, 'x'), "text " + std::to_string(i));
  }
  const auto lines = told(tally);
  ASSERT_THAT(lines, SizeIs(FaultTally::kMostKinds + 1));
  EXPECT_EQ(lines.back(),
            "there are more than 16 kinds of faults; one of the others is: text 16 (and 31 more "
            "records)");
}

TEST(Error, SaysWhatIsWrongApartFromItsPlace) {
  EXPECT_EQ(corrupt_at("f: g", 3, "x: y").said(), "x: y");
  EXPECT_EQ(Error(ErrorKind::kIo, "plain").said(), "plain");
  const Error wrapped =
      system_error("f", "open", 2).wrapped("list line 3: ", " (record 1)").wrapped("", "; more");
  EXPECT_EQ(wrapped.said(), "cannot open: No such file or directory");
  EXPECT_STREQ(wrapped.what(),
               "list line 3: f: cannot open: No such file or directory (record 1); more");
  EXPECT_EQ(wrapped.kind(), ErrorKind::kNotFound);
  EXPECT_EQ(wrapped.to_errno(), 2);
}

}  // namespace
}  // namespace npyfs
