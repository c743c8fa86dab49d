// SPDX-License-Identifier: Apache-2.0

#include "cli/options.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "cli/arguments.h"
#include "cli/option_table.h"
#include "tests/cli/scratch_folder.h"

namespace npyfs {
namespace {

using Texts = std::vector<std::string>;

std::string wrong_usage(const Texts& arguments) {
  return error_of(ErrorKind::kUsage, [&] { parse_command_line(arguments); });
}

TEST(Options, Verbs) {
  EXPECT_EQ(parse_command_line({"a", "mnt"}).verb, Verb::kMount);
  EXPECT_EQ(parse_command_line({"mount", "a", "mnt"}).verb, Verb::kMount);
  EXPECT_EQ(parse_command_line({"-f", "mount", "a", "mnt"}).sources, (Texts{"a"}));
  EXPECT_EQ(parse_command_line({"info", "a", "b"}).sources, (Texts{"a", "b"}));
  EXPECT_EQ(parse_command_line({"info", "a", "--json"}).json, true);
  EXPECT_EQ(parse_command_line({"stats", "a"}).verb, Verb::kStats);
  EXPECT_EQ(parse_command_line({"stats", "a"}).mountpoints, (Texts{"a"}));
  EXPECT_EQ(parse_command_line({"stats", "a", "--watch"}).watch, true);
  EXPECT_EQ(parse_command_line({"stats", "--json", "a"}).json, true);
  expect_says(wrong_usage({"stats"}), {"MOUNTPOINT is missing"});
  expect_says(wrong_usage({"stats", "a", "b"}), {"more than one"});
  expect_says(wrong_usage({"info", "a", "--watch"}), {"--watch", "stats"});
  expect_says(wrong_usage({"stats", "a", "--verify=never"}), {"--verify", "mount"});
  expect_says(wrong_usage({"a", "mnt", "-o", "watch"}), {"watch", "stats"});
  EXPECT_EQ(parse_command_line({"umount", "a", "b"}).mountpoints, (Texts{"a", "b"}));
  EXPECT_EQ(parse_command_line({"fill", "--cache-dir", "d", "a", "b"}).sources, (Texts{"a", "b"}));
  EXPECT_EQ(parse_command_line({"cache", "--cache-dir", "d"}).verb, Verb::kCache);
  EXPECT_EQ(parse_command_line({"--help"}).verb, Verb::kHelp);
  EXPECT_EQ(parse_command_line({"mount", "-h"}).verb, Verb::kHelp);
  EXPECT_EQ(parse_command_line({"-V"}).verb, Verb::kVersion);
}

TEST(Options, Splits) {
  const CommandLine line = parse_command_line({"--split", "train=0.75,val=.25", "--split-seed", "7",
                                               "--rank", "2", "--world-size", "3", "a", "mnt"});
  EXPECT_EQ(line.dataset.split_rule.shares,
            (std::vector<std::pair<std::string, double>>{{"train", 0.75}, {"val", 0.25}}));
  EXPECT_EQ(line.dataset.split_rule.seed, 7U);
  EXPECT_EQ(line.dataset.view.part.rank, 2U);
  EXPECT_EQ(line.dataset.view.part.world_size, 3U);
  for (const char* wrong : {"train", "train=0.5", "train=1.5,val=-0.5", "train=nan,val=1", "a/b=1",
                            "train=0.5,train=0.5", "train=1,", ""}) {
    EXPECT_NE(wrong_usage({"--split", wrong, "a", "mnt"}), "") << wrong;
  }
  EXPECT_NE(wrong_usage({"--rank", "-1", "a", "mnt"}), "");
  EXPECT_NE(wrong_usage({"--split-list", "a/b=/dev/null", "a", "mnt"}), "");
}

TEST(Options, SourcesAndMountpoint) {
  const CommandLine line = parse_command_line({"a", "b", "mnt", "-o", "source=c,source=d"});
  EXPECT_EQ(line.sources, (Texts{"a", "b", "c", "d"}));
  EXPECT_EQ(line.mountpoints, (Texts{"mnt"}));
  EXPECT_EQ(parse_command_line({"[ab]", "-f", "mnt"}).sources, (Texts{"[ab]"}));
  EXPECT_EQ(parse_command_line({"--", "-a", "mnt"}).sources, (Texts{"-a"}));
  EXPECT_EQ(parse_command_line({"mnt", "-o", "source=a"}).sources, (Texts{"a"}));
}

TEST(Options, Values) {
  const CommandLine line = parse_command_line({"--dtype",
                                               "x=float32",
                                               "--dtype=a/b.c%=>i2",
                                               "--shape",
                                               "x=3,4",
                                               "--shape=y=",
                                               "--layout",
                                               "x=pad",
                                               "--pad-value",
                                               "-1",
                                               "--name",
                                               "x=feats",
                                               "--decode",
                                               "z=raw",
                                               "--verify=mount",
                                               "--permissive",
                                               "--cache-size",
                                               "1.5G",
                                               "--threads",
                                               "3",
                                               "--header-align",
                                               "4K",
                                               "--attr",
                                               "k={\"a\": [1, null]}",
                                               "-fd",
                                               "a",
                                               "mnt"});
  const FieldChoices& fields = line.dataset.fields;
  EXPECT_EQ(fields.dtype.at("x"), DType::simple("<f4"));
  EXPECT_EQ(fields.dtype.at("a/b.c%"), DType::simple(">i2"));
  EXPECT_EQ(fields.shape.at("x"), (Shape{3, 4}));
  EXPECT_EQ(fields.shape.at("y"), Shape());
  EXPECT_EQ(fields.layout.at("x"), Layout::kPad);
  EXPECT_EQ(fields.pad_value, "-1");
  EXPECT_EQ(fields.rename.at("x"), "feats");
  EXPECT_EQ(fields.decode.at("z"), "raw");
  EXPECT_EQ(line.dataset.verify, Verify::kMount);
  EXPECT_TRUE(line.dataset.permissive);
  EXPECT_EQ(line.cache_nbytes, std::uint64_t{3} << 29);
  EXPECT_EQ(line.threads, 3u);
  EXPECT_EQ(line.header_align, 4096u);
  EXPECT_EQ(line.dataset.attributes.at(0).first, "k");
  EXPECT_TRUE(line.foreground);
  EXPECT_TRUE(line.debug);
  EXPECT_EQ(line.sources, (Texts{"a"}));
}

TEST(Options, DefaultsAreThoseOfTheHelp) {
  const CommandLine line = parse_command_line({"a", "mnt"});
  EXPECT_EQ(line.dataset.fields.pad_value, "0");
  EXPECT_EQ(line.dataset.verify, Verify::kRead);
  EXPECT_FALSE(line.dataset.permissive);
  EXPECT_FALSE(line.dataset.class_names);
  EXPECT_FALSE(line.cache_nbytes);
  EXPECT_EQ(line.header_align, 64u);
  EXPECT_EQ(line.threads, 0u);
  EXPECT_FALSE(line.foreground);
}

TEST(Options, OfTheCacheFolder) {
  EXPECT_TRUE(parse_command_line({"--fill", "--cache-dir", "d", "a", "m"}).fill);
  const CommandLine fill = parse_command_line(
      {"fill", "--cache-dir=d", "--header-align=4K", "--threads", "3", "--quiet", "--json", "a"});
  EXPECT_EQ(fill.header_align, 4096u);
  EXPECT_EQ(fill.threads, 3u);
  EXPECT_TRUE(fill.quiet && fill.json);
  EXPECT_EQ(fill.shaping, Texts()) << "the header has its own place in the key";
  const Texts list = {"cache", "--cache-dir", "d"};
  EXPECT_EQ(parse_command_line(list).cache_action, CacheAction::kList);
  EXPECT_EQ(parse_command_line({"cache", "--list", "--cache-dir", "d"}).cache_action,
            CacheAction::kList);
  const CommandLine drop = parse_command_line({"cache", "--drop", "--cache-dir", "d", "train/x"});
  EXPECT_EQ(drop.cache_action, CacheAction::kDrop);
  EXPECT_EQ(drop.names, (Texts{"train/x"}));
  expect_says(wrong_usage({"cache", "--drop", "--check", "--cache-dir", "d"}), {"--check"});
  expect_says(wrong_usage({"cache", "--drop"}), {"--cache-dir DIR"});
  expect_says(wrong_usage({"fill", "a"}), {"--cache-dir DIR"});
  expect_says(wrong_usage({"--fill", "a", "m"}), {"--fill", "--cache-dir DIR"});
  expect_says(wrong_usage({"fill", "--cache-dir", "d"}), {"npyfs fill SOURCE"});
  expect_says(wrong_usage({"cache", "--dtype", "x=f4", "--cache-dir", "d"}),
              {"mount, info, index, fill"});
  expect_says(wrong_usage({"a", "m", "-o", "drop"}), {"npyfs cache"});
}

TEST(Options, LaterOnesWin) {
  EXPECT_EQ(parse_command_line({"--verify=never", "--verify=read", "a", "m"}).dataset.verify,
            Verify::kRead);
}

TEST(Options, OfFormats) {
  EXPECT_TRUE(parse_command_line({"a", "m"}).format_options.empty());
  for (const Texts& arguments :
       {Texts{"--allow-pipes", "a", "m"}, {"-o", "allow-pipes", "a", "m"}}) {
    const FormatOptions options = parse_command_line(arguments).format_options;
    ASSERT_EQ(options.size(), 1U);
    EXPECT_EQ(options.at("allow-pipes"), Texts());
  }
  error_of(ErrorKind::kUsage, [] { parse_command_line({"--allow-pipes=yes", "a", "m"}); });
}

TEST(Options, ClassNames) {
  const ScratchFolder folder;
  folder.write("names", "noise\r\nsong one\n\nlast");
  const CommandLine line = parse_command_line({"--class-names", "names", "a", "m"});
  EXPECT_EQ(line.dataset.class_names, (Texts{"noise", "song one", "", "last"}));
  EXPECT_EQ(line.format_options.at("class-names"), *line.dataset.class_names);
  expect_says(error_of(ErrorKind::kNotFound,
                       [] {
                         parse_command_line({"--class-names", "gone", "a", "m"});
                       }),
              {"gone"});
  error_of(ErrorKind::kUnsupported, [] { parse_command_line({"--class-names", ".", "a", "m"}); });
}

TEST(Options, WrongUsageNamesItsPlace) {
  expect_says(wrong_usage({}), {"SOURCE"});
  expect_says(wrong_usage({"mount"}), {"SOURCE"});
  expect_says(wrong_usage({"a"}), {"MOUNTPOINT"});
  expect_says(wrong_usage({"info"}), {"SOURCE"});
  expect_says(wrong_usage({"umount"}), {"MOUNTPOINT"});
  expect_says(wrong_usage({"mont", "a", "m"}), {"'mont'", "did you mean 'mount'?"});
  expect_says(wrong_usage({"--no-such-option", "a", "m"}), {"'--no-such-option'"});
  expect_says(wrong_usage({"--dtpye=x=f4", "a", "m"}), {"'--dtpye'", "did you mean '--dtype'?"});
  expect_says(wrong_usage({"--ranks", "1", "a", "m"}), {"'--ranks'"});
  expect_says(wrong_usage({"a", "m", "--dtype"}), {"--dtype", "NAME=DTYPE"});
  expect_says(wrong_usage({"a", "m", "-o"}), {"-o", "NAME"});
  expect_says(wrong_usage({"--json", "a", "m"}), {"--json", "info"});
  expect_says(wrong_usage({"info", "--threads", "1", "a"}), {"--threads", "mount"});
  expect_says(wrong_usage({"umount", "--verify", "read", "m"}), {"--verify"});
  expect_says(wrong_usage({"info", "-o", "ro", "a"}), {"-o"});
  expect_says(wrong_usage({"--permissive=no", "a", "m"}), {"--permissive"});
}

TEST(Options, WrongValuesAreNamed) {
  const std::pair<const char*, const char*> kCases[] = {
      {"--verify", "sometimes"},
      {"--dtype", "x"},
      {"--dtype", "=f4"},
      {"--dtype", "x=complicate"},
      {"--dtype", "x=object"},
      {"--shape", "x=3,"},
      {"--shape", "x=3,-1"},
      {"--shape", "x=a"},
      {"--shape", "x=4294967296,4294967296"},
      {"--layout", "x=square"},
      {"--decode", "x=jpeg"},
      {"--pad-value", "zero"},
      {"--pad-value", "1 "},
      {"--cache-size", "12Q"},
      {"--cache-size", "99999999T"},
      {"--cache-size", "G"},
      {"--threads", "-1"},
      {"--threads", "1025"},
      {"--header-align", "100"},
      {"--header-align", "32"},
      {"--header-align", "1M"},
      {"--name", "x="},
      {"--name", "x=a/b"},
      {"--name", "x=.."},
      {"--attr", "who"},
      {"--attr", "who=me"},
  };
  for (const auto& [option, value] : kCases) {
    expect_says(wrong_usage({option, value, "a", "m"}), {option});
  }
  expect_says(wrong_usage({"--dtype", "x=flaot32", "a", "m"}), {"did you mean 'float32'?"});
  expect_says(wrong_usage({"--layout", "x=stak", "a", "m"}), {"did you mean 'stack'?"});
  expect_says(wrong_usage({"--decode", "x=rwa", "a", "m"}), {"did you mean 'raw'?"});
  expect_says(wrong_usage({"--attr", "who=me", "a", "m"}), {"'who=\"me\"'"});
}

TEST(Options, Shapes) {
  EXPECT_EQ(parse_shape("--shape", "3,224,224"), (Shape{3, 224, 224}));
  EXPECT_EQ(parse_shape("--shape", "(3, 224)"), (Shape{3, 224}));
  EXPECT_EQ(parse_shape("--shape", "(5,)"), (Shape{5}));
  EXPECT_EQ(parse_shape("--shape", "0"), (Shape{0}));
  EXPECT_EQ(parse_shape("--shape", ""), Shape());
  EXPECT_EQ(parse_shape("--shape", "()"), Shape());
}

TEST(Options, Sizes) {
  EXPECT_EQ(parse_nbytes("--cache-size", "0"), 0u);
  EXPECT_EQ(parse_nbytes("--cache-size", "4096"), 4096u);
  EXPECT_EQ(parse_nbytes("--cache-size", "64k"), 65536u);
  EXPECT_EQ(parse_nbytes("--cache-size", "2T"), std::uint64_t{2} << 40);
}

TEST(Options, ImageSizes) {
  const ImageSize plain = parse_image_size("--image", "224x320");
  EXPECT_EQ(plain.height, 224U);
  EXPECT_EQ(plain.width, 320U);
  EXPECT_FALSE(plain.channels);
  EXPECT_EQ(parse_image_size("--image", "8x9x1").channels, 1);
  EXPECT_EQ(parse_image_size("--image", "32768x32768x1").height, 32768U);  // 1 GiB
  for (const std::string large :
       {"32769x32768x1", "32768x32768", "65535x65535x4", "20000x20000x3"}) {
    EXPECT_THROW(parse_image_size("--image", large), Error) << large;
  }
  for (const std::string bad : {"", "8", "8x", "x8", "0x8", "8x0", "8x9x2", "8x9x3x1", "8x9x",
                                "70000x8", "8X9", "-8x9", "8x9x3x"}) {
    EXPECT_THROW(parse_image_size("--image", bad), Error) << bad;
  }
}

TEST(Help, FitsAScreenAndShowsEveryOption) {
  const std::string help = help_text();
  std::istringstream lines(help);
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    EXPECT_LE(line.size(), 80u) << line;
  }
  EXPECT_LE(count, 66);
  for (const std::string& name : option_names()) {
    expect_says(help, {"--" + name});
  }
}

}  // namespace
}  // namespace npyfs
