// SPDX-License-Identifier: Apache-2.0

#include "formats/bytes/confinement.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "formats/bytes/descriptor_pool.h"
#include "formats/bytes/error.h"

namespace npyfs {

namespace {

// Empty where that cannot be found out.
std::string real_path_of(int fd) {
  std::error_code error;
  return std::filesystem::read_symlink(fmt::format("/proc/self/fd/{}", fd), error).string();
}

// What a path leads to, held fast but not opened: that needs no permission, and does nothing.
class Place {
 public:
  explicit Place(const std::string& path)
      : fd_(open_descriptor([&] { return ::open(path.c_str(), O_PATH | O_CLOEXEC); })) {}
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;
  ~Place() {
    if (fd_ >= 0) {
      const int fault = errno;
      ::close(fd_);
      errno = fault;
    }
  }
  int fd() const { return fd_; }  // below 0, and errno, where there is none

 private:
  int fd_;
};

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

bool Confinement::holds(int fd) const {
  if (allowed_ == nullptr) {
    return true;
  }
  const std::string path = real_path_of(fd);
  return std::any_of(allowed_->begin(), allowed_->end(), [&](const std::string& folder) {
    return path == folder || path.starts_with(folder.ends_with('/') ? folder : folder + "/");
  });
}

void Confinement::require_within(int fd, const std::string& name) const {
  if (!holds(fd)) {
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
  const Place place(path);
  if (place.fd() < 0) {
    throw system_error(name, "open", errno);
  }
  require_within(place.fd(), name);
}

bool Confinement::look_at(const std::string& path, struct stat& status) const {
  if (allowed_ == nullptr) {
    return ::stat(path.c_str(), &status) == 0;
  }
  const Place place(path);
  if (place.fd() < 0) {
    return false;
  }
  if (!holds(place.fd())) {
    errno = EXDEV;
    return false;
  }
  return ::fstat(place.fd(), &status) == 0;
}

}  // namespace npyfs
