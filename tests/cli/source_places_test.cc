// SPDX-License-Identifier: Apache-2.0
//
// Which ways to write SOURCEs mean the same, and which do not.

#include "cli/source_places.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/cli/scratch_folder.h"

namespace npyfs {
namespace {

using Sources = std::vector<std::string>;

class SourcePlacesTest : public ::testing::Test {
 protected:
  SourcePlacesTest() {
    folder_.write("a.ffr", "a");
    folder_.write("b.ffr", "b");
    std::filesystem::create_directory("set");
    folder_.write("set/a.ffr", "a");
    here_ = std::filesystem::current_path();
  }
  // From the folder that holds them all.
  static std::string text(const Sources& sources, bool has_splits = true) {
    return text_of_sources(sources, folder_of_sources(sources), has_splits);
  }

  ScratchFolder folder_;
  std::string here_;
};

TEST_F(SourcePlacesTest, TheFolderHoldsThemAll) {
  EXPECT_EQ(folder_of_sources({"a.ffr"}), here_);
  EXPECT_EQ(folder_of_sources({"set"}), here_ + "/set");
  EXPECT_EQ(folder_of_sources({"set/"}), here_ + "/set");
  EXPECT_EQ(folder_of_sources({"set/*.ffr"}), here_ + "/set");
  EXPECT_EQ(folder_of_sources({"set/s-{0..9}.ffr"}), here_ + "/set");
  EXPECT_EQ(folder_of_sources({"train=set/a.ffr", "val=b.ffr"}), here_);
  EXPECT_EQ(folder_of_sources({"set/a.ffr;./b.ffr"}), here_);
  EXPECT_EQ(folder_of_sources({"a.ffr", "/dev/null"}), "/");
}

TEST_F(SourcePlacesTest, WaysToWriteOneThingAreOneText) {
  EXPECT_EQ(text({"a.ffr"}), text({"./a.ffr"}));
  EXPECT_EQ(text({"a.ffr"}), text({here_ + "//a.ffr"}));
  EXPECT_EQ(text({"set"}), text({"set/"}));
  EXPECT_EQ(text_of_sources({"a.ffr"}, "", true), text_of_sources({here_ + "/a.ffr"}, "", true));
}

TEST_F(SourcePlacesTest, OtherThingsAreOtherTexts) {
  const std::vector<Sources> others = {{"a.ffr"},
                                       {"b.ffr"},
                                       {"a.ffr", "b.ffr"},
                                       {"b.ffr", "a.ffr"},
                                       {"a.ffr;b.ffr"},
                                       {"train=a.ffr", "val=b.ffr"},
                                       {"val=a.ffr", "train=b.ffr"},
                                       {"train=a.ffr", "train/y=b.ffr"},
                                       {"train/y=a.ffr", "train=b.ffr"},
                                       {"ffrecord:a.ffr"},
                                       {"set"},
                                       {"set/a.ffr", "b.ffr"}};
  for (const Sources& one : others) {
    for (const Sources& other : others) {
      EXPECT_EQ(text(one) == text(other), &one == &other) << one[0] << " and " << other[0];
    }
  }
}

TEST_F(SourcePlacesTest, AnOnlySplitMayBeCalledAnything) {
  EXPECT_EQ(text({"train=a.ffr"}, false), text({"val=a.ffr"}, false));
  EXPECT_EQ(text({"train=a.ffr"}, false), text({"a.ffr"}, false));
  EXPECT_NE(text({"train=set"}, false), text({"set"}, false)) << "which may leave entries out";
  EXPECT_NE(text({"train=a.ffr", "train/y=b.ffr"}, false),
            text({"train/y=a.ffr", "train=b.ffr"}, false));
  EXPECT_EQ(splits_of_sources({"train=a.ffr", "train/y=b.ffr"}), 1U);
  EXPECT_EQ(splits_of_sources({"train=a.ffr", "b.ffr"}), 2U);
}

}  // namespace
}  // namespace npyfs
