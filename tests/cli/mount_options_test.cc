// SPDX-License-Identifier: Apache-2.0

#include "cli/mount_options.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/cli/scratch_folder.h"

namespace npyfs {
namespace {

using Texts = std::vector<std::string>;

TEST(MountOptions, AreCutAtCommas) {
  EXPECT_EQ(split_mount_options("a,b=c"), (Texts{"a", "b=c"}));
  EXPECT_EQ(split_mount_options("shape=x=3\\,4\\,5,ro"), (Texts{"shape=x=3,4,5", "ro"}));
  EXPECT_EQ(split_mount_options("a\\\\,b\\*"), (Texts{"a\\", "b\\*"}));
  EXPECT_EQ(split_mount_options(",a,,b,"), (Texts{"a", "b"}));
  EXPECT_EQ(split_mount_options("a\\"), (Texts{"a\\"}));
  EXPECT_EQ(split_mount_options(""), Texts());
}

TEST(MountOptions, OfFstabAreDropped) {
  CommandLine line;
  apply_mount_options(line,
                      "rw,ro,dev,suid,exec,auto,noauto,user,nouser,users,_netdev,nofail,defaults,"
                      "relatime,comment=a b,x-systemd.automount,X-mount.mkdir,subtype=npyfs");
  EXPECT_EQ(line.fuse_options, Texts());
}

TEST(MountOptions, OfTheKernelArePassedOn) {
  CommandLine line;
  apply_mount_options(line, "noatime,nodev,nosuid,noexec,allow_other,max_read=4096");
  EXPECT_EQ(line.fuse_options,
            (Texts{"noatime", "nodev", "nosuid", "noexec", "allow_other", "max_read=4096"}));
}

TEST(MountOptions, AreLongOptions) {
  CommandLine line;
  apply_mount_options(
      line,
      "dtype=x=float32,shape=x=3\\,4,permissive,verify=never,attr=k=[1\\,2],foreground,"
      "source=val=a.ffr,source=b.ffr,fsname=set");
  EXPECT_EQ(line.dataset.fields.dtype.at("x"), DType::simple("<f4"));
  EXPECT_EQ(line.dataset.fields.shape.at("x"), (Shape{3, 4}));
  EXPECT_TRUE(line.dataset.permissive);
  EXPECT_EQ(line.dataset.verify, Verify::kNever);
  EXPECT_EQ(line.dataset.attributes.size(), 1u);
  EXPECT_TRUE(line.foreground);
  EXPECT_EQ(line.sources, (Texts{"val=a.ffr", "b.ffr"}));
  EXPECT_EQ(line.device, "set");
}

TEST(MountOptions, NoPassthroughIsOurOwn) {
  CommandLine line;
  apply_mount_options(line, "noatime");
  EXPECT_TRUE(line.passthrough);
  apply_mount_options(line, "no_passthrough");
  EXPECT_FALSE(line.passthrough);
  EXPECT_EQ(line.fuse_options, Texts{"noatime"});
}

TEST(MountOptions, UnknownOnesAreRefused) {
  const std::pair<const char*, const char*> kCases[] = {
      {"nosuchthing=1", "nosuchthing"},
      {"no_passthru", "did you mean 'no_passthrough'?"},
      {"no_passthrough=1", "no_passthrough"},
      {"verfy=read", "did you mean 'verify'?"},
      {"alow_other", "did you mean 'allow_other'?"},
      {"shape=x=3,4", "\\,"},
      {"verify", "verify=WHEN"},
      {"permissive=1", "takes no value"},
      {"json", "info"},
      {"verify=perhaps", "perhaps"},
      {"uid=0", "uid"},
      {"source", "source"},
      {"allow_other=1", "allow_other"},
      {"modules=subdir", "modules"},
  };
  for (const auto& [text, word] : kCases) {
    CommandLine line;
    expect_says(error_of(ErrorKind::kUsage, [&] { apply_mount_options(line, text); }),
                {word, "-o"});
  }
}

}  // namespace
}  // namespace npyfs
