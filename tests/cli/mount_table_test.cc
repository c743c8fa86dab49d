// SPDX-License-Identifier: Apache-2.0

#include "cli/mount_table.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "tests/cli/scratch_folder.h"

namespace npyfs {
namespace {

TEST(MountTable, IsParsed) {
  const auto table = parse_mount_table(
      "21 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw\n"
      "36 21 0:40 / /mnt/a\\040b ro,nosuid shared:7 master:1 - fuse.npyfs train\\134=a.ffr ro\n"
      "not a line\n"
      "37 36 0:41 / /mnt/a\\040b rw - tmpfs none rw\n");
  ASSERT_EQ(table.size(), 3u);
  EXPECT_EQ(table[1].mountpoint, "/mnt/a b");
  EXPECT_EQ(table[1].type, "fuse.npyfs");
  EXPECT_EQ(table[1].device, "train\\=a.ffr");
  EXPECT_EQ(find_mount(table, "/mnt/a b")->type, "tmpfs");
  EXPECT_FALSE(find_mount(table, "/mnt"));
}

// The root need not be a mount: in a chroot it is a folder.
TEST(MountTable, OfThisProcessHasWhatItIsReadFrom) {
  EXPECT_TRUE(find_mount(read_mount_table(), "/proc"));
}

TEST(Paths, AreMadeAbsolute) {
  const ScratchFolder folder;
  const std::string here = std::filesystem::canonical(folder.path());
  std::filesystem::create_directories("a/b");
  std::filesystem::create_directory_symlink("a", "link");
  EXPECT_EQ(absolute_path("link/b/"), here + "/a/b");
  EXPECT_EQ(absolute_path("link"), here + "/a");
  error_of(ErrorKind::kNotFound, [] { absolute_path("gone"); });

  EXPECT_EQ(absolute_mountpoint("a/b"), here + "/a/b");
  EXPECT_EQ(absolute_mountpoint("link/b/"), here + "/a/b");
  EXPECT_EQ(absolute_mountpoint("link"), here + "/link");
  EXPECT_EQ(absolute_mountpoint("."), here);
  EXPECT_EQ(absolute_mountpoint("a/.."), here);
  EXPECT_EQ(absolute_mountpoint("gone"), here + "/gone");
  EXPECT_EQ(absolute_mountpoint("link/gone//"), here + "/a/gone");
  EXPECT_EQ(absolute_mountpoint("/"), "/");
  EXPECT_EQ(absolute_mountpoint("/no-such-thing-here"), "/no-such-thing-here");
  error_of(ErrorKind::kNotFound, [] { absolute_mountpoint("no/such/thing"); });
}

TEST(Paths, LieBelowFolders) {
  EXPECT_TRUE(lies_below("/a/b", "/a"));
  EXPECT_TRUE(lies_below("/a", "/a"));
  EXPECT_TRUE(lies_below("/a", "/"));
  EXPECT_FALSE(lies_below("/ab", "/a"));
  EXPECT_FALSE(lies_below("/", "/a"));
  EXPECT_FALSE(lies_below("", "/"));
  EXPECT_FALSE(lies_below("pipe:[1]", "/"));
}

}  // namespace
}  // namespace npyfs
