// SPDX-License-Identifier: Apache-2.0

#include "formats/bytes/regular_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <utility>

namespace npyfs {

namespace {

std::int64_t ns_of(const statx_timestamp& time) {
  return to_ns(timespec{time.tv_sec, time.tv_nsec});
}

}  // namespace

Error changed_error(const std::string& name, std::string_view how) {
  return file_error(ErrorKind::kChanged, name,
                    fmt::format("the file {} since it was mounted; unmount and mount again", how));
}

std::optional<Identity> identity_of(const std::string& path, const Confinement& confinement) {
  struct stat status {};
  if (confinement.look_at(path, status)) {
    return Identity{status.st_dev, status.st_ino, static_cast<std::uint64_t>(status.st_size),
                    to_ns(status.st_mtim)};
  }
  return errno == ENOENT || errno == ENOTDIR ? std::optional(Identity()) : std::nullopt;
}

class RegularFile::Use {
 public:
  explicit Use(const RegularFile& file)
      : descriptor_(file.descriptor_), fd_(descriptor_.acquire()) {
    if (fd_ < 0) {
      fd_ = descriptor_.keep_and_acquire(file.open_same());
    }
  }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;
  ~Use() { descriptor_.release(); }

  int fd() const { return fd_; }

 private:
  PooledDescriptor& descriptor_;
  int fd_;
};

RegularFile::RegularFile(std::string path, std::string name, Confinement confinement)
    : path_(std::move(path)),
      name_(name == path_ ? std::string() : std::move(name)),
      confinement_(std::move(confinement)) {}

std::unique_ptr<const RegularFile> RegularFile::open(std::string path, std::string name,
                                                     Confinement confinement) {
  std::unique_ptr<RegularFile> file(
      new RegularFile(std::move(path), std::move(name), std::move(confinement)));
  const int fd = file->open_path(file->seen_);
  if (fd < 0) {
    const int fault = errno;
    file.reset();
    errno = fault;
    return nullptr;
  }
  file->descriptor_.keep_and_acquire(fd);
  file->descriptor_.release();
  return file;
}

bool RegularFile::look(Seen& seen, int fd, const char* path) {
  struct statx about {};
  if (::statx(fd, path, *path == '\0' ? AT_EMPTY_PATH : 0, STATX_BASIC_STATS | STATX_BTIME,
              &about) != 0) {
    return false;
  }
  seen.identity = {::makedev(about.stx_dev_major, about.stx_dev_minor), about.stx_ino,
                   about.stx_size, ns_of(about.stx_mtime)};
  seen.made_at_ns = (about.stx_mask & STATX_BTIME) != 0 ? ns_of(about.stx_btime) : 0;
  seen.changed_at_ns = ns_of(about.stx_ctime);
  seen.mode = about.stx_mode;
  return true;
}

void RegularFile::require_regular(const Seen& seen) const {
  if (!S_ISREG(seen.mode)) {
    throw file_error(ErrorKind::kUnsupported, name(),
                     S_ISDIR(seen.mode) ? "is a directory, expected a file" : "not a regular file");
  }
}

int RegularFile::open_path(Seen& seen) const {
  if (!look(seen, AT_FDCWD, path_.c_str())) {
    if (errno == ENOENT || errno == ENOTDIR) {
      return -1;
    }
    throw system_error(name(), "open", errno);
  }
  require_regular(seen);
  // O_NONBLOCK: should the path have become a FIFO since, opening it must not wait.
  const int fd =
      open_descriptor([&] { return ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK); });
  if (fd < 0) {
    throw system_error(name(), "open", errno);
  }
  try {
    if (!look(seen, fd)) {
      throw system_error(name(), "look at", errno);
    }
    require_regular(seen);
    confinement_.require_within(fd, name());
  } catch (...) {
    ::close(fd);
    throw;
  }
  return fd;
}

// An inode number that became free while the file was not open may be that of another file by now,
// and anybody can set an mtime.
int RegularFile::open_same() const {
  Seen seen;
  int fd = -1;
  try {
    fd = open_path(seen);
    if (fd < 0) {
      throw system_error(name(), "open", errno);
    }
  } catch (const Error&) {
    require_unchanged();  // what is gone, or no file any more, has changed
    throw;
  }
  const bool is_same_inode = seen.made_at_ns == seen_.made_at_ns &&
                             (seen.made_at_ns != 0 || seen.changed_at_ns == seen_.changed_at_ns);
  if (seen.identity != seen_.identity || !is_same_inode) {
    ::close(fd);
    throw changed_error(name(), "has changed");
  }
  return fd;
}

void RegularFile::require_unchanged() const {
  Seen seen;
  if (!look(seen, AT_FDCWD, path_.c_str())) {
    if (errno != ENOENT && errno != ENOTDIR) {
      throw system_error(name(), "look at", errno);  // it may well be the same when that has passed
    }
    throw changed_error(name(), "has gone");
  }
  if (seen.identity != seen_.identity || seen.made_at_ns != seen_.made_at_ns) {
    throw changed_error(name(), "has changed");
  }
}

std::int64_t RegularFile::changed_at_ns() const {
  Seen seen;
  if (!look(seen, Use(*this).fd())) {
    throw system_error(name(), "look at", errno);
  }
  return seen.changed_at_ns;
}

std::size_t RegularFile::read(std::uint64_t offset, std::span<std::byte> out) const {
  const Use use(*this);
  std::size_t done = 0;
  while (done < out.size()) {
    const ssize_t n =
        ::pread(use.fd(), out.data() + done, out.size() - done, static_cast<off_t>(offset + done));
    if (n == 0) {
      break;
    }
    if (n > 0) {
      done += static_cast<std::size_t>(n);
    } else if (errno != EINTR) {
      throw system_error(name(), fmt::format("read at byte {}", offset + done), errno);
    }
  }
  return done;
}

bool RegularFile::read_parts(std::uint64_t offset, std::span<const iovec> parts) const {
  if (parts.size() > IOV_MAX) {
    return false;
  }
  std::size_t wanted = 0;
  for (const iovec& part : parts) {
    wanted += part.iov_len;
  }
  const Use use(*this);
  const ssize_t n =
      ::preadv(use.fd(), parts.data(), static_cast<int>(parts.size()), static_cast<off_t>(offset));
  return n >= 0 && static_cast<std::size_t>(n) == wanted;
}

int RegularFile::open_again() const {
  const Use use(*this);
  const int fd = open_descriptor([&] { return ::fcntl(use.fd(), F_DUPFD_CLOEXEC, 0); });
  if (fd < 0) {
    throw system_error(name(), "open", errno);
  }
  return fd;
}

}  // namespace npyfs
