// SPDX-License-Identifier: Apache-2.0
//
// Files of the cache folder: descriptors that close themselves, and calls that throw. All files are
// read and written by system calls, never mapped: what another process cuts off is then a short
// read, where a mapping would be a SIGBUS.

#pragma once

#include <sys/stat.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace npyfs {

// An open regular file. Any thread.
class DiskFile {
 public:
  DiskFile() = default;
  // Takes the descriptor. `name` is what messages call the file.
  DiskFile(int fd, std::string name) : fd_(fd), name_(std::move(name)) {}
  ~DiskFile();
  DiskFile(DiskFile&& other) noexcept { swap(other); }
  DiskFile& operator=(DiskFile&& other) noexcept {
    DiskFile(std::move(other)).swap(*this);
    return *this;
  }

  bool is_open() const { return fd_ >= 0; }
  int descriptor() const { return fd_; }
  const std::string& name() const { return name_; }

  // All below throw kIo.
  struct stat look() const;
  // False where the file ends within the range.
  bool read(std::uint64_t offset, std::span<std::byte> out) const;
  // The same, bytes that follow each other to several places in memory.
  bool read_parts(std::uint64_t offset, std::span<const iovec> parts) const;
  void write(std::uint64_t offset, std::span<const std::byte> bytes) const;
  void resize(std::uint64_t nbytes) const;
  // Gives the range back to the disk: it reads as zeros. It may reach behind the end of the file,
  // and has to where the last page is to go, too. False where the file system cannot do it.
  bool punch(std::uint64_t offset, std::uint64_t nbytes) const;
  void sync_data() const;
  void sync() const;

  // Locks of the open file, which end with its descriptor, however the process ends. Those of two
  // descriptors exclude each other, in one process, too.
  enum class Lock { kWriter = 0, kUser = 1 };
  // Whoever has it is alone with it; false where another has it or shares it. The file must be open
  // for writing.
  bool try_lock(Lock lock) const;
  bool try_share(Lock lock) const;
  void unlock(Lock lock) const;
  // Whether another descriptor has or shares it.
  bool is_locked_by_others(Lock lock) const;

 private:
  void swap(DiskFile& other) noexcept {
    std::swap(fd_, other.fd_);
    name_.swap(other.name_);
  }

  int fd_ = -1;
  std::string name_;
};

bool is_same_file(const struct stat& a, const struct stat& b);

// An open folder. Any thread.
class DiskFolder {
 public:
  // What happens where there is no such folder: it is made, with mode 0700 (not its parents), or
  // kNotFound is thrown.
  enum class Missing { kIsMade, kIsRefused };
  // Throws kNotFound, kIo; kUnsupported, with what to do, where another user owns it or others may
  // write to it: what lies there could be anybody's. Root's folder is as good as one's own.
  explicit DiskFolder(const std::string& path, Missing missing = Missing::kIsMade);
  ~DiskFolder();
  DiskFolder(const DiskFolder&) = delete;
  DiskFolder& operator=(const DiskFolder&) = delete;

  // As it was given.
  const std::string& path() const { return path_; }
  std::string path_of(const std::string& name) const { return path_ + "/" + name; }
  // Whether files can be made here.
  bool is_writable() const;

  // `flags` as for open(2). Throws kNotFound; kUnsupported for what is a link, no regular file or
  // another user's; kIo.
  DiskFile open(const std::string& name, int flags) const;
  // Nothing where there is nothing of this name. Throws kIo.
  std::optional<struct stat> look(const std::string& name) const;
  // Whether `name` is this very file.
  bool leads_to(const std::string& name, const DiskFile& file) const;
  // False where there was none. Throws kIo.
  bool unlink(const std::string& name) const;
  void rename(const std::string& from, const std::string& to) const;
  // False where there is a file of the name `to` already. Throws kNotFound, kIo.
  bool link(const std::string& from, const std::string& to) const;
  std::vector<std::string> names() const;
  void sync() const;

  // The room of the file system.
  struct Space {
    std::uint64_t nbytes = 0;
    std::uint64_t free_nbytes = 0;  // for this user
  };
  Space space() const;

 private:
  bool is_trustworthy(const struct stat& status) const;

  std::string path_;
  int fd_;
};

}  // namespace npyfs
