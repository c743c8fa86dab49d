// SPDX-License-Identifier: Apache-2.0

#include "formats/registry.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace npyfs {
namespace {

// The format that an empty file of this name is taken for; empty where none.
std::string by_name(const std::string& path) {
  const Location location{path, false,
                          std::make_shared<MemorySource>(path, std::vector<std::byte>())};
  const Format* format = detect_format(location);
  return format == nullptr ? "" : format->name;
}

TEST(Registry, AnEmptyFileIsKnownByItsExtension) {
  EXPECT_EQ(by_name("a.rec"), "recordio");
  EXPECT_EQ(by_name("shards.d/train-0.REC.gz"), "recordio");
  EXPECT_EQ(by_name("a.ffr"), "ffrecord");
  EXPECT_EQ(by_name("a.tfrecord.gz"), "tfrecord");
  for (const char* name :
       {"a.tar.gz", "a.tar.zst", "a.TAR.xz", "a.tar.bz2", "a.tar.lz4", "a.tlz4"}) {
    EXPECT_EQ(by_name(name), "tar") << name;
  }
  EXPECT_NE(by_name("tar.zst"), "tar");
  EXPECT_EQ(by_name("a.rec.zst"), "") << "of formats that open no more than gzip";
  EXPECT_EQ(by_name("a.txt"), "");
  EXPECT_EQ(by_name("rec"), "");
}

TEST(Registry, TheNumberOfAShardIsNoExtension) {
  EXPECT_EQ(by_name("name.tfrecord-00001-of-00002"), "tfrecord");
  EXPECT_EQ(by_name("name.TFRecord-00001-OF-00002.gz"), "tfrecord");
  EXPECT_EQ(by_name("name.tfrecord.gz-00001-of-00002"), "tfrecord");
  EXPECT_EQ(by_name("v1.2/name.tfrecords-100000-of-200000"), "tfrecord");
  EXPECT_EQ(by_name("train-00000-of-00003.rec"), "recordio");
  EXPECT_EQ(by_name("name.tfrecord-00001"), "");
  EXPECT_EQ(by_name("name.tfrecord-of-00002"), "");
  EXPECT_EQ(by_name("name.tfrecord-1-of-"), "");
  EXPECT_EQ(by_name("name-00001-of-00002"), "");
  EXPECT_EQ(by_name("-1-of-2"), "");
}

}  // namespace
}  // namespace npyfs
