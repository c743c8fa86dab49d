// SPDX-License-Identifier: Apache-2.0

#include "kept/disk_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <memory>

#include "formats/bytes/descriptor_pool.h"
#include "formats/bytes/error.h"

namespace npyfs {

namespace {

// Asks for one byte of the file, which stands for the lock; false where another has it.
bool set_lock(const DiskFile& file, DiskFile::Lock lock, short type) {
  struct flock range {};
  range.l_type = type;
  range.l_whence = SEEK_SET;
  range.l_start = static_cast<off_t>(lock);
  range.l_len = 1;
  if (::fcntl(file.descriptor(), F_OFD_SETLK, &range) == 0) {
    return true;
  }
  if (errno == EAGAIN || errno == EACCES || errno == EINTR) {
    return false;
  }
  throw system_error(file.name(), "lock", errno);
}

void require(bool done, const std::string& name, const char* verb) {
  if (!done) {
    throw system_error(name, verb, errno);
  }
}

}  // namespace

DiskFile::~DiskFile() {
  if (fd_ >= 0) {
    ::close(fd_);
  }
}

struct stat DiskFile::look() const {
  struct stat status {};
  require(::fstat(fd_, &status) == 0, name_, "look at");
  return status;
}

bool DiskFile::read(std::uint64_t offset, std::span<std::byte> out) const {
  while (!out.empty()) {
    const ssize_t n = ::pread(fd_, out.data(), out.size(), static_cast<off_t>(offset));
    if (n == 0) {
      return false;
    }
    if (n > 0) {
      offset += static_cast<std::uint64_t>(n);
      out = out.subspan(static_cast<std::size_t>(n));
    } else {
      require(errno == EINTR, name_, "read");
    }
  }
  return true;
}

bool DiskFile::read_parts(std::uint64_t offset, std::span<const iovec> parts) const {
  std::uint64_t nbytes = 0;
  for (const iovec& part : parts) {
    nbytes += part.iov_len;
  }
  const ssize_t n =
      parts.size() > IOV_MAX
          ? -1
          : ::preadv(fd_, parts.data(), static_cast<int>(parts.size()), static_cast<off_t>(offset));
  if (n >= 0 && static_cast<std::uint64_t>(n) == nbytes) {
    return true;
  }
  // Short reads and errors are rare.
  for (const iovec& part : parts) {
    if (!read(offset, {static_cast<std::byte*>(part.iov_base), part.iov_len})) {
      return false;
    }
    offset += part.iov_len;
  }
  return true;
}

void DiskFile::write(std::uint64_t offset, std::span<const std::byte> bytes) const {
  while (!bytes.empty()) {
    const ssize_t n = ::pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (n >= 0) {
      offset += static_cast<std::uint64_t>(n);
      bytes = bytes.subspan(static_cast<std::size_t>(n));
    } else {
      require(errno == EINTR, name_, "write");
    }
  }
}

void DiskFile::resize(std::uint64_t nbytes) const {
  require(::ftruncate(fd_, static_cast<off_t>(nbytes)) == 0, name_, "resize");
}

bool DiskFile::punch(std::uint64_t offset, std::uint64_t nbytes) const {
  return ::fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
                     static_cast<off_t>(nbytes)) == 0;
}

void DiskFile::sync_data() const { require(::fdatasync(fd_) == 0, name_, "sync"); }
void DiskFile::sync() const { require(::fsync(fd_) == 0, name_, "sync"); }

bool DiskFile::try_lock(Lock lock) const { return set_lock(*this, lock, F_WRLCK); }
bool DiskFile::try_share(Lock lock) const { return set_lock(*this, lock, F_RDLCK); }
void DiskFile::unlock(Lock lock) const { set_lock(*this, lock, F_UNLCK); }

bool DiskFile::is_locked_by_others(Lock lock) const {
  struct flock range {};
  range.l_type = F_WRLCK;
  range.l_whence = SEEK_SET;
  range.l_start = static_cast<off_t>(lock);
  range.l_len = 1;
  require(::fcntl(fd_, F_OFD_GETLK, &range) == 0, name_, "look for locks of");
  return range.l_type != F_UNLCK;
}

bool is_same_file(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

DiskFolder::DiskFolder(const std::string& path, Missing missing) : path_(path) {
  if (missing == Missing::kIsMade && ::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
    // A read-only file system says so even where the folder is there.
    const int why = errno;
    if (::access(path.c_str(), F_OK) != 0) {
      throw system_error(path, "make the cache folder", why);
    }
  }
  fd_ = open_descriptor([&] { return ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); });
  require(fd_ >= 0, path, "open the cache folder");
  struct stat status {};
  const bool is_seen = ::fstat(fd_, &status) == 0;
  if (!is_seen || !is_trustworthy(status) || (status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    const int why = errno;
    ::close(fd_);
    if (!is_seen) {
      throw system_error(path, "look at the cache folder", why);
    }
    throw file_error(ErrorKind::kUnsupported, path,
                     is_trustworthy(status)
                         ? fmt::format("the cache folder has mode {:04o}, expected 0700, since "
                                       "others could write to it; chmod it or name another one",
                                       status.st_mode & 07777)
                         : fmt::format("the cache folder belongs to user {}, expected {}; name "
                                       "another one",
                                       status.st_uid, ::geteuid()));
  }
}

DiskFolder::~DiskFolder() { ::close(fd_); }

bool DiskFolder::is_trustworthy(const struct stat& status) const {
  return status.st_uid == ::geteuid() || status.st_uid == 0;
}

bool DiskFolder::is_writable() const { return ::faccessat(fd_, ".", W_OK | X_OK, AT_EACCESS) == 0; }

DiskFile DiskFolder::open(const std::string& name, int flags) const {
  const std::string path = path_of(name);
  // O_NONBLOCK: opening a FIFO must not wait.
  const int fd = open_descriptor([&] {
    return ::openat(fd_, name.c_str(), flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
  });
  if (fd < 0 && (errno == ELOOP || errno == ENXIO || errno == EISDIR)) {
    throw file_error(ErrorKind::kUnsupported, path, "not a regular file");
  }
  require(fd >= 0, path, "open");
  DiskFile file(fd, path);
  const struct stat status = file.look();
  if (!S_ISREG(status.st_mode) || !is_trustworthy(status)) {
    throw file_error(ErrorKind::kUnsupported, path, "not a regular file of this user");
  }
  return file;
}

std::optional<struct stat> DiskFolder::look(const std::string& name) const {
  struct stat status {};
  if (::fstatat(fd_, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0) {
    return status;
  }
  require(errno == ENOENT, path_of(name), "look at");
  return std::nullopt;
}

bool DiskFolder::leads_to(const std::string& name, const DiskFile& file) const {
  const std::optional<struct stat> there = look(name);
  return there && is_same_file(*there, file.look());
}

bool DiskFolder::unlink(const std::string& name) const {
  if (::unlinkat(fd_, name.c_str(), 0) == 0) {
    return true;
  }
  require(errno == ENOENT, path_of(name), "remove");
  return false;
}

void DiskFolder::rename(const std::string& from, const std::string& to) const {
  require(::renameat(fd_, from.c_str(), fd_, to.c_str()) == 0, path_of(from), "rename");
}

bool DiskFolder::link(const std::string& from, const std::string& to) const {
  if (::linkat(fd_, from.c_str(), fd_, to.c_str(), 0) == 0) {
    return true;
  }
  require(errno == EEXIST, path_of(from), "link");
  return false;
}

std::vector<std::string> DiskFolder::names() const {
  // A descriptor of its own, since it has a position.
  const int fd =
      open_descriptor([&] { return ::openat(fd_, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC); });
  require(fd >= 0, path_, "list");
  DIR* const folder = ::fdopendir(fd);
  if (folder == nullptr) {
    const int why = errno;
    ::close(fd);
    throw system_error(path_, "list", why);
  }
  const std::unique_ptr<DIR, int (*)(DIR*)> closer(folder, ::closedir);
  std::vector<std::string> names;
  while (true) {
    errno = 0;
    const dirent* const entry = ::readdir(folder);
    if (entry == nullptr) {
      require(errno == 0, path_, "list");
      break;
    }
    names.emplace_back(entry->d_name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

void DiskFolder::sync() const { require(::fsync(fd_) == 0, path_, "sync"); }

DiskFolder::Space DiskFolder::space() const {
  struct statvfs status {};
  require(::fstatvfs(fd_, &status) == 0, path_, "ask for free space in");
  return {status.f_blocks * status.f_frsize, status.f_bavail * status.f_frsize};
}

}  // namespace npyfs
