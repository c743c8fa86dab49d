// SPDX-License-Identifier: Apache-2.0
//
// What an .npz archive may not do to whoever opens it. Archives of numpy are opened in
// tests/fs/test_stores.py.

#include "formats/payloads/npz.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "formats/bytes/crc.h"
#include "formats/bytes/npy_header.h"
#include "tests/support/fake_source.h"

namespace npyfs {
namespace {

template <typename T>
std::string le(std::uint64_t value) {
  const T number = static_cast<T>(value);
  return {reinterpret_cast<const char*>(&number), sizeof number};
}
const auto u16 = le<std::uint16_t>;
const auto u32 = le<std::uint32_t>;

// Members of those names, all the same array of one byte, stored.
std::string write_npz(const std::vector<std::string>& names) {
  const std::string npy = print_npy_header(DType::simple("|u1"), {1}, false) + "7";
  const std::string sums =
      u32(crc32(std::as_bytes(std::span(npy)))) + u32(npy.size()) + u32(npy.size());
  std::string archive;
  std::string directory;
  for (const std::string& name : names) {
    const std::string offset = u32(archive.size());
    const std::string head = u16(20) + u16(0) + u16(0) + u32(0) + sums + u16(name.size()) + u16(0);
    archive += "PK\3\4" + head + name + npy;
    directory += "PK\1\2" + u16(20) + head + u16(0) + u16(0) + u16(0) + u32(0) + offset + name;
  }
  return archive + directory + "PK\5\6" + u16(0) + u16(0) + u16(names.size()) + u16(names.size()) +
         u32(directory.size()) + u32(archive.size()) + u16(0);
}

StorePtr open(const std::string& archive, std::vector<std::string>& warnings) {
  OpenContext context;
  context.warn = [&](const std::string& text) { warnings.push_back(text); };
  return open_npz(std::make_shared<testing::FakeSource>("a.npz", archive), context);
}

std::string path_of(std::size_t parts) {
  std::string path;
  for (std::size_t i = 1; i < parts; ++i) {
    path += "a/";
  }
  return path + "x.npy";
}

TEST(Npz, APathOfManyPartsIsLeftOut) {
  std::vector<std::string> warnings;
  const StorePtr store =
      open(write_npz({"y.npy", path_of(30000), path_of(33), path_of(32)}), warnings);
  ASSERT_EQ(warnings.size(), 2U);
  for (const std::string& warning : warnings) {
    EXPECT_NE(warning.find("more than 32 parts"), std::string::npos) << warning;
    EXPECT_LT(warning.size(), 1000U);
  }
  ASSERT_EQ(store->root.arrays.size(), 1U);
  EXPECT_EQ(store->root.arrays[0].name, "y");
  const Group* group = &store->root;
  for (int depth = 1; depth < 32; ++depth) {
    ASSERT_EQ(group->groups.size(), 1U) << depth;
    group = &group->groups[0];
  }
  ASSERT_EQ(group->arrays.size(), 1U);
  EXPECT_EQ(group->arrays[0].name, "x");
}

TEST(Npz, MembersOfOneFolderAreOneGroup) {
  std::vector<std::string> warnings;
  const StorePtr store =
      open(write_npz({"b/x.npy", "a/x.npy", "b/y.npy", "b/c/x.npy", "z.npy"}), warnings);
  EXPECT_TRUE(warnings.empty());
  ASSERT_EQ(store->root.groups.size(), 2U);
  const Group& b = store->root.groups[1];
  EXPECT_EQ(b.name, "b");
  ASSERT_EQ(b.arrays.size(), 2U);
  EXPECT_EQ(b.arrays[1].name, "y");
  ASSERT_EQ(b.groups.size(), 1U);
  EXPECT_EQ(b.groups[0].name, "c");
}

}  // namespace
}  // namespace npyfs
