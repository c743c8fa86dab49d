// SPDX-License-Identifier: Apache-2.0

#include "kept/kept_key.h"

#include <gtest/gtest.h>

namespace npyfs {
namespace {

TEST(KeptKey, IsItsTextAndTheTextsDigest) {
  const Identity source{8, 9, 10, 11};
  const auto key =
      KeyWriter().add("format", "tar").add_sources(std::span(&source, 1)).finish("train/x.npy");
  ASSERT_TRUE(key);
  EXPECT_EQ(key->text, "kept=1\nformat=tar\nsources=1\nsource=file:8:9:10:11\n");
  // printf 'kept=1\nformat=tar\nsources=1\nsource=file:8:9:10:11\n' | sha256sum | cut -c-32
  EXPECT_EQ(key->name(), "5cbe835bd7c6d9faef6f93fed31ab8e4");
  EXPECT_TRUE(is_kept_name(key->name()));
}

TEST(KeptKey, TheLabelIsNoPartOfIt) {
  EXPECT_EQ(KeyWriter().finish("a")->name(), KeyWriter().finish("b")->name());
}

TEST(KeptKey, NoTwoListsMakeOneText) {
  const auto text = [](const KeyWriter& writer) { return writer.finish("")->text; };
  EXPECT_NE(text(KeyWriter().add("a", "1\nb=2")), text(KeyWriter().add("a", "1").add("b", "2")));
  EXPECT_NE(text(KeyWriter().add("a", "\n")), text(KeyWriter().add("a", "\\n")));
  EXPECT_NE(text(KeyWriter().add("a", "b")), text(KeyWriter().add("b", "a")));
}

TEST(KeptKey, ASourceWithoutIdentityHasNone) {
  const Identity sources[] = {{1, 2, 3, 4}, {}};
  EXPECT_FALSE(KeyWriter().add_sources(sources).finish(""));
}

TEST(KeptKey, ManySourcesStandThereByTheirDigest) {
  std::vector<Identity> sources(1000, Identity{1, 2, 3, 4});
  const auto before = KeyWriter().add_sources(sources).finish("");
  EXPECT_LT(before->text.size(), 200u);
  sources[500].mtime_ns = 5;
  EXPECT_NE(KeyWriter().add_sources(sources).finish("")->text, before->text);
}

TEST(KeptKey, NamesOfOthersAreNoKeptNames) {
  EXPECT_FALSE(is_kept_name(""));
  EXPECT_FALSE(is_kept_name(std::string(31, 'a')));
  EXPECT_FALSE(is_kept_name(std::string(32, 'g')));
  EXPECT_FALSE(is_kept_name("../" + std::string(29, 'a')));
}

}  // namespace
}  // namespace npyfs
