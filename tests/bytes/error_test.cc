// SPDX-License-Identifier: Apache-2.0
//
// Messages are one line of text, whatever a file calls itself.

#include "formats/bytes/error.h"

#include <gtest/gtest.h>

#include <string>

namespace npyfs {
namespace {

TEST(Printable, LeavesTextAsItIs) {
  for (const char* text : {"", "train/x.npy", "a b~", "\u00a0\u00e4\u20ac\U0001f600", "\\x41"}) {
    EXPECT_EQ(printable(text), text);
  }
}

TEST(Printable, EscapesWhatATerminalWouldObey) {
  EXPECT_EQ(printable("a\nb\x1b[2J\x7f"), "a\\x0ab\\x1b[2J\\x7f");
  EXPECT_EQ(printable(std::string("\0", 1)), "\\x00");
  // The same as ESC [, of one character; and NEL, a new line.
  EXPECT_EQ(printable("a\u009b2Jb\u0085"), "a\\xc2\\x9b2Jb\\xc2\\x85");
  EXPECT_EQ(printable("\u0080\u009f"), "\\xc2\\x80\\xc2\\x9f");
}

TEST(Printable, EscapesWhatIsNotUtf8) {
  EXPECT_EQ(printable("a\xff"), "a\\xff");
  EXPECT_EQ(printable("\x9b"), "\\x9b");
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80") << "half of a pair";
  EXPECT_EQ(printable("\xe2\x82"), "\\xe2\\x82") << "cut";
}

}  // namespace
}  // namespace npyfs
