// SPDX-License-Identifier: Apache-2.0
//
// Paths, keys and identities as text.

#include "formats/bytes/paths.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <random>

#include "formats/bytes/identity.h"

namespace npyfs {
namespace {

TEST(Paths, FoldersAndNames) {
  EXPECT_EQ(folder_of_path("a/b/c"), "a/b");
  EXPECT_EQ(folder_of_path("c"), "");
  EXPECT_EQ(folder_of_path("/c"), "/");
  EXPECT_EQ(name_of_path("a/b/c"), "c");
  EXPECT_EQ(name_of_path("c"), "c");
  EXPECT_EQ(join_keys("", "c"), "c");
  EXPECT_EQ(join_keys("a", ""), "a");
  EXPECT_EQ(join_keys("a", "c"), "a/c");
  EXPECT_EQ(join_keys("/", "c"), "/c");
  EXPECT_TRUE(has_part("a/../b", ".."));
  EXPECT_FALSE(has_part("a/..b", ".."));
}

TEST(Paths, AreNormalAsTheStandardHasIt) {
  constexpr std::string_view kParts[] = {"/", "/", "a", "b", ".", "..", "/", "x.y"};
  std::mt19937 random(1);
  for (int i = 0; i < 20'000; ++i) {
    std::string path;
    for (std::uint32_t left = random() % 9; left > 0; --left) {
      path += kParts[random() % std::size(kParts)];
    }
    if (path.find_first_not_of('/') != std::string::npos) {
      ASSERT_EQ(normal_path(path), std::filesystem::path(path).lexically_normal().string()) << path;
    }
  }
}

TEST(Paths, KeysLeadNowhereElse) {
  for (const char* key : {"a", "a/b", ".a", "a/..b"}) {
    EXPECT_TRUE(is_key(key)) << key;
  }
  for (const char* text : {"", "/a", "a/", "a//b", ".", "a/../b", "..", "a\\b"}) {
    EXPECT_FALSE(is_key(text)) << text;
  }
}

TEST(Paths, UrlsHaveASchemeAndTwoSlashes) {
  EXPECT_EQ(url_scheme("s3://b/k"), "s3");
  EXPECT_EQ(url_scheme("a+b-c.1://x"), "a+b-c.1");
  for (const char* text : {"", "a", "a:b", "a:/b", "://b", "1a://b", "a/b://c", "a b://c"}) {
    EXPECT_EQ(url_scheme(text), "") << text;
  }
}

TEST(Identity, IsTheSameAsText) {
  const Identity identity{66306, 131, 18'446'744'073'709'551'615U, -5};
  EXPECT_EQ(identity.text(), "file:66306:131:18446744073709551615:-5");
  EXPECT_EQ(Identity::parse(identity.text()), identity);
  EXPECT_EQ(Identity::parse(Identity().text()), Identity());
  EXPECT_FALSE(Identity().exists());
  for (const char* text :
       {"", "file", "file:1:2:3", "file:1:2:3:4:5", "file:1:2:3:4 ", "file:1:0:3:4",
        "file:1:-2:3:4", "file:1:2:18446744073709551616:4", "etag:abc", "nones"}) {
    EXPECT_FALSE(Identity::parse(text)) << text;
  }
}

}  // namespace
}  // namespace npyfs
