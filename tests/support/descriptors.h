// SPDX-License-Identifier: Apache-2.0
//
// Descriptors of this process: how many it may have, and what they have open.

#pragma once

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstddef>
#include <filesystem>
#include <string>

#include "formats/bytes/descriptor_pool.h"

namespace npyfs::testing {

// Of the limit on open files, which is given back.
class FileLimit {
 public:
  explicit FileLimit(rlim_t most) {
    EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &before_), 0);
    const rlimit limit{most, before_.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  }
  ~FileLimit() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  FileLimit(const FileLimit&) = delete;
  FileLimit& operator=(const FileLimit&) = delete;

 private:
  rlimit before_{};
};

// How many descriptors have a file open whose path begins like this.
inline std::size_t count_open(const std::string& path_prefix) {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    count += std::filesystem::read_symlink(entry, gone).string().starts_with(path_prefix) ? 1 : 0;
  }
  return count;
}

// As if many other files had been read since.
inline void close_all_idle() {
  while (close_idle_descriptor()) {
  }
}

}  // namespace npyfs::testing
