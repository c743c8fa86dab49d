// SPDX-License-Identifier: Apache-2.0
//
// A folder for one test, which is its working directory while it lives.

#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <string_view>

#include "formats/bytes/error.h"

namespace npyfs {

class ScratchFolder {
 public:
  ScratchFolder() : before_(std::filesystem::current_path()) {
    std::string pattern = std::filesystem::temp_directory_path() / "npyfs-cli-XXXXXX";
    path_ = ::mkdtemp(pattern.data());
    std::filesystem::current_path(path_);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  ~ScratchFolder() {
    std::filesystem::current_path(before_);
    std::filesystem::remove_all(path_);
  }

  const std::filesystem::path& path() const { return path_; }

  // Makes the folders above it, too.
  void write(const std::filesystem::path& name, std::string_view content = "") const {
    std::filesystem::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name, std::ios::binary) << content;
  }

 private:
  std::filesystem::path before_;
  std::filesystem::path path_;
};

// The text of the Error that `call` throws, which must be of this kind.
inline std::string error_of(ErrorKind kind, const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

inline void expect_says(const std::string& text, std::initializer_list<std::string_view> words) {
  for (const std::string_view word : words) {
    EXPECT_NE(text.find(word), std::string::npos) << "'" << text << "' lacks '" << word << "'";
  }
}

}  // namespace npyfs
