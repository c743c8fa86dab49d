// SPDX-License-Identifier: Apache-2.0

#include "formats/bytes/confinement.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "formats/bytes/error.h"

namespace npyfs {

namespace {

// Empty where that cannot be found out.
std::string real_path_of(int fd) {
  std::error_code error;
  return std::filesystem::read_symlink(fmt::format("/proc/self/fd/{}", fd), error).string();
}

}  // namespace

Confinement::Confinement(const std::vector<std::string>& folders) {
  std::vector<std::string> allowed;
  for (const std::string& folder : folders) {
    std::error_code error;
    const std::string real = std::filesystem::canonical(folder, error).string();
    if (!error) {
      allowed.push_back(real);
    }
  }
  allowed_ = std::make_shared<const std::vector<std::string>>(std::move(allowed));
}

void Confinement::require_within(int fd, const std::string& name) const {
  if (allowed_ == nullptr) {
    return;
  }
  const std::string path = real_path_of(fd);
  const auto holds = [&](const std::string& folder) {
    return path == folder || path.starts_with(folder.ends_with('/') ? folder : folder + "/");
  };
  if (std::none_of(allowed_->begin(), allowed_->end(), holds)) {
    throw file_error(ErrorKind::kUnsupported, name,
                     fmt::format("it lies outside of {}, expected it within as others may read "
                                 "this mount (allow_other); --base-dir names a folder above, "
                                 "--allow-outside allows any",
                                 printable(fmt::format("{}", fmt::join(*allowed_, " and ")))));
  }
}

void Confinement::require_path_within(const std::string& path, const std::string& name) const {
  if (allowed_ == nullptr) {
    return;
  }
  const int fd = ::open(path.c_str(), O_PATH | O_CLOEXEC);
  if (fd < 0) {
    throw system_error(name, "open", errno);
  }
  try {
    require_within(fd, name);
  } catch (...) {
    ::close(fd);
    throw;
  }
  ::close(fd);
}

}  // namespace npyfs
