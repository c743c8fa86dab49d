// SPDX-License-Identifier: Apache-2.0
//
// Which files the kernel reads by itself, decided when they are first opened, for good.

#include "fs/native_files.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <set>
#include <thread>
#include <vector>

#include "formats/bytes/error.h"
#include "tests/kept/kept_setting.h"

namespace npyfs {
namespace {

// Has a backing file from when it is told on.
class FakeFile : public File {
 public:
  std::uint64_t nbytes() const override { return 0; }
  void plan_read(ByteRange /*range*/, Plan& /*plan*/) const override {}
  std::optional<int> open_backing() const override {
    ++asked;
    if (has_changed) {
      throw Error(ErrorKind::kChanged, "it has changed");
    }
    return is_complete ? std::optional(::open("/dev/null", O_RDONLY | O_CLOEXEC)) : std::nullopt;
  }

  std::atomic<bool> is_complete = false;
  std::atomic<bool> has_changed = false;
  mutable std::atomic<int> asked = 0;
};

class NativeFilesTest : public ::testing::Test {
 protected:
  BackingCalls calls() {
    return {[this](int fd) {
              EXPECT_GE(::fcntl(fd, F_GETFD), 0) << "it is open";
              last_fd_ = fd;
              return refused_ != 0 ? -refused_ : ++last_backing_;
            },
            [this](std::int32_t /*backing*/) { ++closed_; }};
  }

  std::atomic<int> last_fd_ = -1;
  std::atomic<std::int32_t> last_backing_ = 0;
  std::atomic<int> closed_ = 0;
  int refused_ = 0;
};

TEST_F(NativeFilesTest, GivesAFileOneNumberForGood) {
  NativeFiles files(calls());
  FakeFile x;
  x.is_complete = true;
  FakeFile y;
  y.is_complete = true;
  EXPECT_EQ(files.open(7, x), 1);
  EXPECT_EQ(::fcntl(last_fd_, F_GETFD), -1) << "the kernel keeps it, we do not";
  EXPECT_EQ(files.open(8, y), 2);
  EXPECT_EQ(files.open(7, x), 1);
  x.is_complete = false;
  EXPECT_EQ(files.open(7, x), 1);
  EXPECT_TRUE(files.is_native(7, x));
  EXPECT_EQ(x.asked, 1);
}

TEST_F(NativeFilesTest, WhatWasDeclinedStaysSo) {
  NativeFiles files(calls());
  FakeFile x;
  EXPECT_FALSE(files.is_native(7, x)) << "which decides nothing";
  x.is_complete = true;
  EXPECT_TRUE(files.is_native(7, x));
  EXPECT_EQ(files.decline(7), 1) << "too late";
  FakeFile y;
  EXPECT_EQ(files.decline(8), 0);
  y.is_complete = true;
  EXPECT_EQ(files.open(8, y), 0);
  EXPECT_FALSE(files.is_native(8, y));
  EXPECT_EQ(files.open(9, y), 2) << "under another number";
}

TEST_F(NativeFilesTest, AKeptArrayIsNativeOnceItIsComplete) {
  const testing::CacheFolder cache;
  const auto folder = KeptFolder::open(cache.path());
  const auto array = folder->open(testing::key_of(1), 100);
  NativeFiles files(calls());
  FakeFile x;
  EXPECT_FALSE(files.is_native(7, x, array.get()));
  EXPECT_EQ(files.open(8, x, array.get()), 0);
  ASSERT_EQ(testing::write(*array, 1, {0}), KeptArray::Outcome::kKept);
  EXPECT_EQ(files.open(8, x, array.get()), 0) << "it was opened in part";
  EXPECT_TRUE(files.is_native(7, x, array.get()));
  EXPECT_EQ(files.open(7, x, array.get()), last_backing_);
  EXPECT_EQ(x.asked, 0) << "its own is not looked for";
}

TEST_F(NativeFilesTest, SaysWhatIsKnownWithoutAsking) {
  NativeFiles files(calls());
  FakeFile x;
  x.is_complete = true;
  EXPECT_FALSE(files.find_known(7));
  files.open(7, x);
  EXPECT_TRUE(files.find_known(7)->is_native);
  EXPECT_EQ(files.find_known(7)->why_not, "");
  refused_ = ELOOP;
  files.open(8, x);
  EXPECT_FALSE(files.find_known(8)->is_native);
  EXPECT_NE(files.find_known(8)->why_not.find("another one"), std::string::npos);
  files.decline(9);
  EXPECT_FALSE(files.find_known(9)->is_native);
  EXPECT_EQ(x.asked, 2);
}

TEST_F(NativeFilesTest, RemembersNothingOfFilesThatNeverHaveOne) {
  NativeFiles files(calls());
  FakeFile x;
  EXPECT_EQ(files.open(7, x), 0);
  EXPECT_EQ(files.open(7, x), 0);
  EXPECT_EQ(x.asked, 2);
}

TEST_F(NativeFilesTest, WhatTheKernelRefusesIsSaidOnce) {
  for (const auto& [refused, why] :
       {std::pair{EPERM, "CAP_SYS_ADMIN"}, {ELOOP, "lies on another"}, {EINVAL, "Invalid"}}) {
    refused_ = refused;
    NativeFiles files(calls());
    FakeFile x;
    x.is_complete = true;
    ::testing::internal::CaptureStderr();
    EXPECT_EQ(files.open(7, x), 0);
    EXPECT_EQ(files.open(8, x), 0);
    EXPECT_EQ(files.open(7, x), 0);
    const std::string said = ::testing::internal::GetCapturedStderr();
    EXPECT_EQ(x.asked, 2) << "once for each number";
    EXPECT_NE(said.find(why), std::string::npos) << said;
    EXPECT_EQ(said.find("in the kernel's place"), said.rfind("in the kernel's place"));
  }
  EXPECT_EQ(closed_, 0);
}

TEST_F(NativeFilesTest, AFileThatCannotBeOpenedIsReadByUs) {
  NativeFiles files(calls());
  FakeFile x;
  x.has_changed = true;
  EXPECT_EQ(files.open(7, x), 0);
  x.has_changed = false;
  x.is_complete = true;
  EXPECT_EQ(files.open(7, x), 0);
}

TEST_F(NativeFilesTest, WithoutTheKernelItSaysWhyUnlessTheUserDidNotWantIt) {
  for (const bool is_wanted : {true, false}) {
    NativeFiles files(NativeFiles::Refusal{"no such luck", is_wanted});
    FakeFile x;
    x.is_complete = true;
    ::testing::internal::CaptureStderr();
    EXPECT_EQ(files.open(7, x), 0);
    const std::string said = ::testing::internal::GetCapturedStderr();
    EXPECT_EQ(said.find("no such luck") != std::string::npos, is_wanted) << said;
  }
}

TEST_F(NativeFilesTest, ThoseWhoOpenAtTheSameTimeGetOneNumber) {
  NativeFiles files(calls());
  FakeFile x;
  x.is_complete = true;
  constexpr int kInos = 200;
  std::vector<std::vector<std::int32_t>> found(4);
  {
    std::vector<std::jthread> threads;
    for (auto& mine : found) {
      threads.emplace_back([&files, &x, &mine] {
        for (Ino ino = 1; ino <= kInos; ++ino) {
          mine.push_back(files.open(ino, x));
        }
      });
    }
  }
  for (const auto& mine : found) {
    EXPECT_EQ(mine, found[0]);
  }
  EXPECT_EQ(std::set<std::int32_t>(found[0].begin(), found[0].end()).size(), kInos);
  EXPECT_EQ(last_backing_ - closed_, kInos) << "none is left behind";
}

}  // namespace
}  // namespace npyfs
