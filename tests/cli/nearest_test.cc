// SPDX-License-Identifier: Apache-2.0

#include "cli/nearest.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace npyfs {
namespace {

const std::vector<std::string> kWords = {"mount", "umount", "info", "ffrecord", "recordio"};

TEST(Nearest, FindsSlips) {
  EXPECT_EQ(nearest("muont", kWords), "mount");
  EXPECT_EQ(nearest("unmount", kWords), "umount");
  EXPECT_EQ(nearest("inof", kWords), "info");
  EXPECT_EQ(nearest("ffrecords", kWords), "ffrecord");
  EXPECT_EQ(nearest("recodrio", kWords), "recordio");
}

TEST(Nearest, LeavesOtherWordsAlone) {
  EXPECT_EQ(nearest("", kWords), "");
  EXPECT_EQ(nearest("x", kWords), "");
  EXPECT_EQ(nearest("verify", kWords), "");
  EXPECT_EQ(nearest(std::string(100'000, 'm'), kWords), "");
  EXPECT_EQ(nearest("mount", {}), "");
}

TEST(Nearest, MakesASentence) {
  EXPECT_EQ(did_you_mean("mont", kWords), "; did you mean 'mount'?");
  EXPECT_EQ(did_you_mean("zzz", kWords), "");
}

}  // namespace
}  // namespace npyfs
