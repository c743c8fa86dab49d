// SPDX-License-Identifier: Apache-2.0
//
// What libfuse says is kept and logged, whichever of its threads says it.

#include "fs/libfuse_log.h"

#include <fuse3/fuse_log.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

namespace npyfs {
namespace {

class LibfuseLog : public ::testing::Test {
 protected:
  LibfuseLog() { take_libfuse_lines(); }
  ~LibfuseLog() override { fuse_set_log_func(nullptr); }
};

TEST_F(LibfuseLog, KeepsTheLastLine) {
  ::testing::internal::CaptureStderr();
  fuse_log(FUSE_LOG_ERR, "fuse: first\n");
  fuse_log(FUSE_LOG_ERR, "fuse: no such option `%s'\n", "x\033y");
  EXPECT_EQ(libfuse_said(), "fuse: no such option `x\\x1by'");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "") << "whoever failed says it";
}

TEST_F(LibfuseLog, LogsWhatIsSaidWhileServing) {
  ::testing::internal::CaptureStderr();
  {
    const LibfuseLines logged;
    fuse_log(FUSE_LOG_ERR, "fuse: reading device: %s\n", "Bad file descriptor");
    fuse_log(FUSE_LOG_ERR, "fuse: reading device: %s\n", "Bad file descriptor");
    fuse_log(FUSE_LOG_WARNING, "fuse: odd\n");
    fuse_log(FUSE_LOG_DEBUG, "not for everybody\n");
  }
  fuse_log(FUSE_LOG_ERR, "after it\n");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "npyfs: error: libfuse: fuse: reading device: Bad file descriptor\n"
            "npyfs: warning: libfuse: fuse: odd\n");
}

TEST_F(LibfuseLog, HearsThreads) {
  constexpr int kThreads = 4;
  constexpr int kLines = 500;
  ::testing::internal::CaptureStderr();
  {
    const LibfuseLines logged;
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([i] {
        for (int line = 0; line < kLines; ++line) {
          fuse_log(FUSE_LOG_ERR, "thread %d says %d\n", i, line);
          EXPECT_NE(libfuse_said().find("says"), std::string::npos);
        }
      });
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
  }
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), kThreads * kLines);
}

}  // namespace
}  // namespace npyfs
