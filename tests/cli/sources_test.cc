// SPDX-License-Identifier: Apache-2.0
//
// Which files a SOURCE becomes. Empty files stand for data: they are recognised by their names, and
// an empty RecordIO file has no records.

#include "cli/sources.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>
#include <vector>

#include "cli/expand.h"
#include "cli/found_files.h"
#include "cli/source_spec.h"
#include "tests/cli/scratch_folder.h"

namespace npyfs {
namespace {

using Texts = std::vector<std::string>;

class SourcesTest : public testing::Test {
 protected:
  void write_all(const Texts& names) const {
    for (const std::string& name : names) {
      folder_.write(name);
    }
  }

  // "val recordio dir/val.rec" for each file found.
  Texts find(const std::string& text) {
    warnings_.clear();
    OpenContext context;
    context.warn = [&](const std::string& warning) { warnings_.push_back(warning); };
    Texts out;
    for (const FoundFile& file : find_files(parse_source(text), context)) {
      out.push_back(file.split + " " + file.format->name + " " + file.location.path);
      EXPECT_EQ(file.location.source->name(), file.location.path);
    }
    return out;
  }

  std::string refusal(ErrorKind kind, const std::string& text) {
    return error_of(kind, [&] { find(text); });
  }

  ScratchFolder folder_;
  Texts warnings_;
};

TEST_F(SourcesTest, SingleFiles) {
  write_all({"a.rec", "val.ffr", "b.tfrecord.gz", "C.REC", "plain"});
  EXPECT_EQ(find("a.rec"), (Texts{"train recordio a.rec"}));
  EXPECT_EQ(find("val.ffr"), (Texts{"val ffrecord val.ffr"}));
  EXPECT_EQ(find("b.tfrecord.gz"), (Texts{"train tfrecord b.tfrecord.gz"}));
  EXPECT_EQ(find("C.REC"), (Texts{"train recordio C.REC"}));
  EXPECT_EQ(find("ffrecord:plain"), (Texts{"train ffrecord plain"}));
  EXPECT_EQ(find("dev7=val.ffr"), (Texts{"dev7 ffrecord val.ffr"}));
  expect_says(refusal(ErrorKind::kUnsupported, "plain"), {"plain", "ffrecord", ".rec", "FORMAT:"});
}

TEST_F(SourcesTest, Lists) {
  write_all({"p0.rec", "p1.rec", "p2.rec", "val-a.rec", "test.rec", "q;r.rec"});
  const Texts all = {"train recordio p0.rec", "train recordio p1.rec", "train recordio p2.rec"};
  EXPECT_EQ(find("p0.rec;p1.rec;p2.rec"), all);
  EXPECT_EQ(find("p0.rec;p1.rec;p2.rec;"), all);
  EXPECT_EQ(find("p{0..2}.rec"), all);
  EXPECT_EQ(find("p{0..1}.rec;p[2].rec"), all);
  EXPECT_EQ(find("p?.rec"), all);
  EXPECT_EQ(find("{p,p}1.rec"), (Texts{"train recordio p1.rec", "train recordio p1.rec"}));
  EXPECT_EQ(find("p2.rec;p0.rec"), (Texts{"train recordio p2.rec", "train recordio p0.rec"}));
  EXPECT_EQ(find("val-a.rec;test.rec"),
            (Texts{"val recordio val-a.rec", "test recordio test.rec"}));
  EXPECT_EQ(find("val-a.rec;p0.rec"), (Texts{"train recordio val-a.rec", "train recordio p0.rec"}));
  EXPECT_EQ(find("q;r.rec"), (Texts{"train recordio q;r.rec"}));
}

TEST_F(SourcesTest, ListsThatAreRefused) {
  write_all({"p0.rec"});
  expect_says(refusal(ErrorKind::kNotFound, "p{0..3}.rec"), {"p1.rec"});
  expect_says(refusal(ErrorKind::kNotFound, "gone-*.rec"), {"gone-*.rec", "no file matches"});
  expect_says(refusal(ErrorKind::kNotFound, "recordio:gone"), {"gone"});
  expect_says(refusal(ErrorKind::kNotFound, "x/y=1.rec"), {"1.rec", "x/y=1.rec"});
  expect_says(refusal(ErrorKind::kUsage, "p0.rec;;p0.rec"), {"p0.rec;;p0.rec"});
  refusal(ErrorKind::kUsage, "p{0..3.rec");
}

TEST_F(SourcesTest, GlobsPassOverIndexFilesAndSortByBytes) {
  write_all({"s-10.rec", "s-2.rec", "s-2.idx", "s-B.rec", "s-a.rec", "s-a.rec.idx", "other.lst"});
  EXPECT_EQ(find("s-*"), (Texts{"train recordio s-10.rec", "train recordio s-2.rec",
                                "train recordio s-B.rec", "train recordio s-a.rec"}));
  expect_says(refusal(ErrorKind::kUnsupported, "*"), {"other.lst"});
}

TEST_F(SourcesTest, WhatExistsIsNotExpanded) {
  write_all({"a{0..1}.rec", "b*.rec", "b1.rec", "c{x}.rec"});
  EXPECT_EQ(find("a{0..1}.rec"), (Texts{"train recordio a{0..1}.rec"}));
  EXPECT_EQ(find("b*.rec"), (Texts{"train recordio b*.rec"}));
  EXPECT_EQ(find("b1.rec;b*.rec"), (Texts{"train recordio b1.rec", "train recordio b*.rec"}));
  EXPECT_EQ(find("c{x}.{rec,rec}"), (Texts{"train recordio c{x}.rec", "train recordio c{x}.rec"}));
}

TEST_F(SourcesTest, DirectoriesByName) {
  write_all({"d/train-1.rec", "d/train-0.rec", "d/train-0.idx", "d/val.rec", "d/val.lst",
             "d/test.rec", "d/.hidden.rec"});
  const Texts split = {"test recordio d/test.rec", "train recordio d/train-0.rec",
                       "train recordio d/train-1.rec", "val recordio d/val.rec"};
  EXPECT_EQ(find("d"), split);
  EXPECT_EQ(find("d/"), split);
  EXPECT_EQ(find("recordio:d"), split);
  EXPECT_EQ(warnings_, Texts());
  EXPECT_EQ(find("all=d").front(), "all recordio d/test.rec");
  EXPECT_EQ(find("all=d").back(), "all recordio d/val.rec");
}

TEST_F(SourcesTest, OneEntryWithoutASplitWordMakesAllTrain) {
  write_all({"d/val.rec", "d/extra.rec"});
  EXPECT_EQ(find("d"), (Texts{"train recordio d/extra.rec", "train recordio d/val.rec"}));
  // One that no format recognises does not count.
  write_all({"e/val.rec", "e/README.md"});
  EXPECT_EQ(find("e"), (Texts{"val recordio e/val.rec"}));
}

TEST_F(SourcesTest, DirectoriesThatHoldSplits) {
  write_all({"d/train.ffr/0.ffr", "d/train.ffr/1.ffr", "d/val/test.ffr", "d/other/0.ffr"});
  EXPECT_EQ(find("d"), (Texts{"train ffrecord d/train.ffr/0.ffr",
                              "train ffrecord d/train.ffr/1.ffr", "val ffrecord d/val/test.ffr"}));
  ASSERT_EQ(warnings_.size(), 1u);
  expect_says(warnings_.front(), {"d/other"});
  const Texts by_glob = {"train ffrecord d/train.ffr/0.ffr", "train ffrecord d/train.ffr/1.ffr",
                         "val ffrecord d/val/test.ffr"};
  EXPECT_EQ(find("d/{train.ffr,val}"), by_glob);
  EXPECT_EQ(find("d/train.ffr"),
            (Texts{"train ffrecord d/train.ffr/0.ffr", "train ffrecord d/train.ffr/1.ffr"}));
  EXPECT_EQ(find("x=ffrecord:d/train.ffr"),
            (Texts{"x ffrecord d/train.ffr/0.ffr", "x ffrecord d/train.ffr/1.ffr"}));
}

TEST_F(SourcesTest, WhatIsLeftOutIsSaidOnce) {
  write_all({"d/train.rec", "d/train.idx", "d/b.txt", "d/a.md", "d/lonely.idx"});
  EXPECT_EQ(find("d"), (Texts{"train recordio d/train.rec"}));
  ASSERT_EQ(warnings_.size(), 1u);
  expect_says(warnings_.front(), {"d/a.md", "2 more"});
}

TEST_F(SourcesTest, DirectoriesThatAreRefused) {
  write_all({"none/a.txt", "wrong/a.rec"});
  std::filesystem::create_directory("empty");
  expect_says(refusal(ErrorKind::kNotFound, "none"), {"none", ".rec"});
  expect_says(refusal(ErrorKind::kNotFound, "empty"), {"empty"});
  expect_says(refusal(ErrorKind::kNotFound, "ffrecord:wrong"), {"wrong", "ffrecord"});
  write_all({"dangling/a.rec"});
  std::filesystem::create_symlink("gone", "dangling/b.rec");
  expect_says(refusal(ErrorKind::kNotFound, "dangling"), {"dangling/b.rec"});
}

TEST_F(SourcesTest, OnlyRegularFilesAreOpened) {
  write_all({"d/train.rec"});
  ASSERT_EQ(::mkfifo("pipe.rec", 0600), 0);
  ASSERT_EQ(::mkfifo("d/val.rec", 0600), 0);
  expect_says(refusal(ErrorKind::kUnsupported, "pipe.rec"), {"pipe.rec", "regular file"});
  expect_says(refusal(ErrorKind::kUnsupported, "recordio:/dev/zero"), {"/dev/zero"});
  EXPECT_EQ(find("d"), (Texts{"train recordio d/train.rec"}));
  EXPECT_EQ(warnings_.size(), 1u);
}

TEST_F(SourcesTest, UrlsAreRefusedByTheirScheme) {
  write_all({"a.rec"});
  for (const char* text :
       {"s3://b/x.rec", "val=s3://b/x.rec", "recordio:s3://b/x", "s3://b/{0..9}", "s3://b/*.rec",
        "s3://b/x;s3://b/y", "a.rec;s3://b/x", "val=a.rec;s3://b/x", "recordio:a.rec;s3://b/x"}) {
    expect_says(refusal(ErrorKind::kUnsupported, text),
                {"s3://b/", "does not read s3:// yet, expected a local path; copy"});
  }
}

TEST_F(SourcesTest, OpenedBySourceAndSplit) {
  write_all({"d/train-0.rec", "d/train-1.rec", "d/val.rec", "e.rec"});
  OpenContext context;
  const std::vector<OpenedSource> opened = open_sources({"d", "train/y=e.rec"}, context);
  ASSERT_EQ(opened.size(), 3u);
  EXPECT_EQ(opened[0].split, "train");
  EXPECT_EQ(opened[0].tables.size(), 2u);
  EXPECT_EQ(opened[0].text, "d");
  EXPECT_EQ(opened[0].format, "recordio");
  EXPECT_EQ(opened[1].split, "val");
  EXPECT_EQ(opened[1].tables.size(), 1u);
  EXPECT_EQ(opened[2].array, "y");
}

TEST_F(SourcesTest, OneSplitHasOneFormat) {
  write_all({"a.rec", "b.ffr", "d/train.rec", "d/val.ffr"});
  OpenContext context;
  for (const std::vector<std::string>& arguments :
       {Texts{"a.rec;b.ffr"}, Texts{"a.rec", "b.ffr"}}) {
    expect_says(error_of(ErrorKind::kUnsupported, [&] { open_sources(arguments, context); }),
                {"a.rec is recordio", "b.ffr is ffrecord", "'train'"});
  }
  EXPECT_EQ(find("d"), (Texts{"train recordio d/train.rec", "val ffrecord d/val.ffr"}));
}

TEST_F(SourcesTest, AKindThatAFormatHasIsForTheXOfItsRecords) {
  write_all({"a.rec", "b.rec", "c.ffr"});
  const auto open = [](const Texts& arguments, const std::string& name, const char* kind) {
    OpenContext context;
    context.decode[name] = kind;
    return open_sources(arguments, context).size();
  };
  EXPECT_EQ(open({"a.rec"}, "x", "imagerecord"), 1U);
  EXPECT_EQ(open({"a.rec", "train/y=b.rec"}, "y", "imagerecord"), 2U);
  const auto refusal_of = [&](const Texts& arguments, const std::string& name, const char* kind) {
    return error_of(ErrorKind::kUsage, [&] { open(arguments, name, kind); });
  };
  expect_says(refusal_of({"a.rec", "val=c.ffr"}, "x", "imagerecord"),
              {"c.ffr: --decode x=imagerecord: only the x of recordio can be that"});
  expect_says(refusal_of({"a.rec"}, "x", "int32vector"), {"only the x of kaldi, ark, scp"});
  expect_says(refusal_of({"a.rec"}, "y", "imagerecord"), {"--decode y=imagerecord"});
}

TEST_F(SourcesTest, WrongUsageIsFoundFirst) {
  OpenContext context;
  error_of(ErrorKind::kUsage, [&] { open_sources({"gone.rec", "nosuch:x"}, context); });
}

}  // namespace
}  // namespace npyfs
