// SPDX-License-Identifier: Apache-2.0

#include "formats/bytes/regular_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "formats/bytes/error.h"

namespace npyfs {

namespace {

Error not_regular(const std::string& name, const struct stat& status) {
  return file_error(
      ErrorKind::kUnsupported, name,
      S_ISDIR(status.st_mode) ? "is a directory, expected a file" : "not a regular file");
}

}  // namespace

Identity identity_of(const struct stat& status) {
  return {status.st_dev, status.st_ino, static_cast<std::uint64_t>(status.st_size),
          to_ns(status.st_mtim)};
}

std::optional<Identity> identity_of(const std::string& path, const Confinement& confinement) {
  struct stat status {};
  if (confinement.look_at(path, status)) {
    return identity_of(status);
  }
  return errno == ENOENT || errno == ENOTDIR ? std::optional(Identity()) : std::nullopt;
}

std::optional<RegularFile> RegularFile::open(const std::string& path, const std::string& name,
                                             const Confinement& confinement) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) {
      return std::nullopt;
    }
    throw system_error(name, "open", errno);
  }
  if (!S_ISREG(status.st_mode)) {
    throw not_regular(name, status);
  }
  // O_NONBLOCK: should the path have become a FIFO since, opening it must not wait.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    throw system_error(name, "open", errno);
  }
  RegularFile file(fd, name);
  if (::fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
    throw not_regular(name, status);
  }
  confinement.require_within(fd, name);
  file.first_ = identity_of(status);
  return file;
}

RegularFile::RegularFile(RegularFile&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), name_(std::move(other.name_)), first_(other.first_) {}

RegularFile::~RegularFile() {
  if (fd_ >= 0) {
    ::close(fd_);
  }
}

struct stat RegularFile::look() const {
  struct stat status {};
  if (::fstat(fd_, &status) != 0) {
    throw system_error(name_, "look at", errno);
  }
  return status;
}

Identity RegularFile::identity() const { return identity_of(look()); }

std::int64_t RegularFile::changed_at_ns() const { return to_ns(look().st_ctim); }

std::size_t RegularFile::read(std::uint64_t offset, std::span<std::byte> out) const {
  std::size_t done = 0;
  while (done < out.size()) {
    const ssize_t n =
        ::pread(fd_, out.data() + done, out.size() - done, static_cast<off_t>(offset + done));
    if (n == 0) {
      break;
    }
    if (n > 0) {
      done += static_cast<std::size_t>(n);
    } else if (errno != EINTR) {
      throw system_error(name_, fmt::format("read at byte {}", offset + done), errno);
    }
  }
  return done;
}

}  // namespace npyfs
