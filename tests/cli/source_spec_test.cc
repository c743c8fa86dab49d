// SPDX-License-Identifier: Apache-2.0

#include "cli/source_spec.h"

#include <gtest/gtest.h>

#include <ostream>
#include <string>

#include "tests/cli/scratch_folder.h"

namespace npyfs {
namespace {

struct GrammarCase {
  const char* text;
  const char* split;
  const char* array;
  const char* format;
  const char* location;
};

void PrintTo(const GrammarCase& grammar, std::ostream* out) { *out << grammar.text; }

class Grammar : public testing::TestWithParam<GrammarCase> {};

TEST_P(Grammar, Parses) {
  const ScratchFolder folder;
  folder.write("a=b.ffr");
  folder.write("ffrecord:x.ffr");
  folder.write("c:d.ffr");
  const SourceSpec spec = parse_source(GetParam().text);
  EXPECT_EQ(spec.text, GetParam().text);
  EXPECT_EQ(spec.split, GetParam().split);
  EXPECT_EQ(spec.array, GetParam().array);
  EXPECT_EQ(spec.format == nullptr ? "" : spec.format->name, std::string(GetParam().format));
  EXPECT_EQ(spec.location, GetParam().location);
}

INSTANTIATE_TEST_SUITE_P(
    Sources, Grammar,
    testing::Values(GrammarCase{"gone.ffr", "", "", "", "gone.ffr"},
                    GrammarCase{"ffrecord:gone.ffr", "", "", "ffrecord", "gone.ffr"},
                    GrammarCase{"val=gone.ffr", "val", "", "", "gone.ffr"},
                    GrammarCase{"val=recordio:gone", "val", "", "recordio", "gone"},
                    GrammarCase{"train/y=gone", "train", "y", "", "gone"},
                    GrammarCase{"train/y.a%2Fb=tfrecord:gone", "train", "y.a%2Fb", "tfrecord",
                                "gone"},
                    GrammarCase{"a_b.c-7=gone", "a_b.c-7", "", "", "gone"},
                    // A path that exists is that path.
                    GrammarCase{"a=b.ffr", "", "", "", "a=b.ffr"},
                    GrammarCase{"ffrecord:x.ffr", "", "", "", "ffrecord:x.ffr"},
                    GrammarCase{"val=a=b.ffr", "val", "", "", "a=b.ffr"},
                    GrammarCase{"val=c:d.ffr", "val", "", "", "c:d.ffr"},
                    // Only the first mark counts.
                    GrammarCase{"val=x=y", "val", "", "", "x=y"},
                    GrammarCase{"ffrecord:x:y=z", "", "", "ffrecord", "x:y=z"},
                    GrammarCase{"ffrecord=x", "ffrecord", "", "", "x"},
                    // Behind SPLIT=, a folder with a ':' is no FORMAT.
                    GrammarCase{"val=/data/a:b/*.ffr", "val", "", "", "/data/a:b/*.ffr"},
                    // URLs, which know nothing of FORMAT; but a FORMAT is one.
                    GrammarCase{"s3://b/a=b.ffr", "", "", "", "s3://b/a=b.ffr"},
                    GrammarCase{"val=https://h/x?y=z:1", "val", "", "", "https://h/x?y=z:1"},
                    GrammarCase{"recordio:s3://b/x", "", "", "recordio", "s3://b/x"},
                    GrammarCase{"recordio:///data/x", "", "", "recordio", "///data/x"},
                    GrammarCase{"a.ffr;b.ffr", "", "", "", "a.ffr;b.ffr"},
                    // A ':' of a list's later item is no FORMAT's.
                    GrammarCase{"a.ffr;s3://b/x", "", "", "", "a.ffr;s3://b/x"},
                    GrammarCase{"val=a.ffr;s3://b/x", "val", "", "", "a.ffr;s3://b/x"},
                    GrammarCase{"ffrecord:a;s3://b/x", "", "", "ffrecord", "a;s3://b/x"}));

TEST(SourceSpec, RefusesWhatIsNeitherSplitNorFormat) {
  const ScratchFolder folder;
  for (const char* text : {"nosuch:file", "bad split=file", "/data/x=1/a.ffr", "=file", ":file",
                           ".hidden=file", "attrs.npy=file", "val=ark,f:file", "ark,scp:file",
                           "val/=file", "val/a/b=file", "val=nosuch:file", "val=", "ffrecord:"}) {
    expect_says(error_of(ErrorKind::kUsage, [&] { parse_source(text); }),
                {text, "ffrecord", "recordio", "tfrecord"});
  }
  error_of(ErrorKind::kUsage, [] { parse_source(""); });
}

TEST(SourceSpec, Hints) {
  const ScratchFolder folder;
  expect_says(error_of(ErrorKind::kUsage, [] { parse_source("ffrecrod:file"); }),
              {"did you mean 'ffrecord'?"});
  expect_says(error_of(ErrorKind::kUsage, [] { parse_source("train:file"); }),
              {"did you mean 'train='?"});
}

TEST(SplitWords, AreFoundInNames) {
  const std::pair<const char*, const char*> kCases[] = {
      {"train", "train"},
      {"training.ffr", "train"},
      {"tr_0.rec", "train"},
      {"TRAIN-00000-of-00003.rec", "train"},
      {"train2017", "train"},
      {"some/where/val.ffr", "val"},
      {"valid/", "val"},
      {"Validation_x", "val"},
      {"dev.0", "val"},
      {"cv", "val"},
      {"test-1", "test"},
      {"tst.ffr", "test"},
      {"eval2.ffr", "test"},
      {"trainval.rec", ""},
      {"img-train-0.rec", ""},
      {"x_train.rec", ""},
      {"00000.ffr", ""},
      {"train/0.ffr", ""},
      {"-train", ""},
      {".train", ""},
      {"/", ""},
      {"", ""},
  };
  for (const auto& [name, split] : kCases) {
    EXPECT_EQ(split_of_name(name), split) << name;
  }
}

TEST(SourceSpec, TakesKaldisSpecifiers) {
  const SourceSpec spec = parse_source("val/y=ark,s,cs,p:file");
  EXPECT_STREQ(spec.format->name, "ark");
  EXPECT_EQ(spec.location, "file");
  EXPECT_TRUE(spec.said.permissive);
  EXPECT_TRUE(spec.said.options.count("keys-sorted") != 0);
  EXPECT_FALSE(parse_source("scp,no,ncs:file").said.permissive);
  EXPECT_STREQ(parse_source("b,bg,scp,p,np:file").format->name, "scp");
}

TEST(SplitWords, FormatNamesAreSorted) {
  EXPECT_EQ(format_names(),
            "ark, das, ffrecord, hdf5, kaldi, npy, recordio, scp, tar, tfrecord, wenet, zarr");
}

}  // namespace
}  // namespace npyfs
