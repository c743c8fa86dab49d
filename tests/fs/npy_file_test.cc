// SPDX-License-Identifier: Apache-2.0
//
// An array as a flat file: which of its sources are looked at when it is opened.

#include "fs/npy_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/fake_source.h"
#include "tests/support/fake_table.h"

namespace npyfs {
namespace {

using testing::FakeSource;
using testing::refusal_of;

class Nothing : public Array {
 public:
  Nothing() : Array(DType::simple("|u1"), {0}) {}
  void plan(ByteRange /*range*/, Plan& /*plan*/) const override {}
  std::string storage() const override { return "computed"; }
};

class NpyFileTest : public ::testing::Test {
 protected:
  void make(std::size_t count) {
    NamedArray array{
        .name = "x", .array = std::make_shared<Nothing>(), .format = "fake", .sources = {}};
    for (std::size_t i = 0; i < count; ++i) {
      sources_.push_back(std::make_shared<FakeSource>("s" + std::to_string(i), ""));
      array.sources.push_back(sources_.back());
    }
    file_ = std::make_unique<NpyFile>(std::move(array), 64);
  }
  // How often each source was looked at.
  std::vector<std::uint64_t> looks() const {
    std::vector<std::uint64_t> all;
    for (const auto& source : sources_) {
      all.push_back(source->looks());
    }
    return all;
  }

  std::vector<std::shared_ptr<const FakeSource>> sources_;
  std::unique_ptr<NpyFile> file_;
};

TEST_F(NpyFileTest, LooksAtAllOfAFewSourcesOnceASecond) {
  make(3);
  file_->check_unchanged(7);
  file_->check_unchanged(7);
  EXPECT_EQ(looks(), std::vector<std::uint64_t>(3, 1));
  file_->check_unchanged(8);
  EXPECT_EQ(looks(), std::vector<std::uint64_t>(3, 2));
  sources_[1]->set_changed();
  EXPECT_EQ(refusal_of([&] { file_->check_unchanged(9); }).text, "s1 has changed");
}

TEST_F(NpyFileTest, LooksAtManySourcesInTurn) {
  constexpr std::size_t kCount = 1000;
  make(kCount);
  for (std::size_t opened = 1; opened <= 20; ++opened) {
    file_->check_unchanged(static_cast<std::int64_t>(opened));
    const auto all = looks();
    std::uint64_t sum = 0;
    for (const std::uint64_t n : all) {
      sum += n;
    }
    EXPECT_EQ(sum, opened * NpyFile::kMostLooks);
    const auto [least, most] = std::minmax_element(all.begin(), all.end());
    EXPECT_LE(*most - *least, 1U) << "none is looked at twice before all have been";
  }
}

// Reads ask each time: of many sources only after one, of whatever file, was found changed.
TEST_F(NpyFileTest, RemembersThatNoneHasChanged) {
  make(2);
  const ChangeMark of_another;
  of_another.set();
  file_->require_unchanged();
  sources_[1]->set_changed();
  file_->require_unchanged();  // a FakeSource is not counted
  const ChangeMark counted;
  counted.set();
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(refusal_of([&] { file_->require_unchanged(); }).text, "s1 has changed");
  }
}

TEST_F(NpyFileTest, WithoutSourcesThereIsNothingToLookAt) {
  make(0);
  file_->check_unchanged(1);
  EXPECT_TRUE(file_->sources().empty());
}

}  // namespace
}  // namespace npyfs
