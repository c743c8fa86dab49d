// SPDX-License-Identifier: Apache-2.0
//
// A regular file that is read, and what tells whether it is still the same one.

#pragma once

#include <sys/stat.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "formats/bytes/confinement.h"
#include "formats/bytes/descriptor_pool.h"
#include "formats/bytes/error.h"
#include "formats/bytes/identity.h"

namespace npyfs {

// Nanoseconds since the epoch.
inline std::int64_t to_ns(const timespec& time) {
  return static_cast<std::int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

// The identity of what is at `path`. Nothing, and errno, if it cannot be looked at or lies outside
// of `confinement`.
std::optional<Identity> identity_of(const std::string& path, const Confinement& confinement = {});

// Kind kChanged, for a file that "has changed", "has gone" or the like.
Error changed_error(const std::string& name, std::string_view how);

// A file that was opened. Its descriptor is closed while it has not been read for long, if too many
// are open (descriptor_pool.h). To be read then, it is opened again, as it was the first time, and
// has to be the same file: that throws kChanged otherwise, and kIo where it cannot be told. Any
// thread.
class RegularFile {
 public:
  // Null, and errno, where there is no such file. `path` is absolute; `name` is what messages call
  // it. Throws kIo, and kUnsupported for what is not a regular file (a FIFO is never opened: that
  // could wait for ever) or lies outside of `confinement`.
  static std::unique_ptr<const RegularFile> open(std::string path, std::string name,
                                                 Confinement confinement);
  RegularFile(const RegularFile&) = delete;
  RegularFile& operator=(const RegularFile&) = delete;

  const std::string& path() const { return path_; }
  const std::string& name() const { return name_.empty() ? path_ : name_; }
  // When it was opened the first time.
  const Identity& identity() const { return seen_.identity; }
  std::uint64_t nbytes() const { return seen_.identity.nbytes; }
  // Throws kChanged unless its path leads to the same file, unchanged; kIo where that cannot be
  // told. Opens nothing.
  void require_unchanged() const;

  // When its content or its inode last changed, nanoseconds since the epoch; looked at anew.
  std::int64_t changed_at_ns() const;
  // Fills `out` from `offset` on: how many bytes there were. One system call, if it is open.
  std::size_t read(std::uint64_t offset, std::span<std::byte> out) const;
  // Fills `parts`, one after another, if that takes one system call: whether it did.
  bool read_parts(std::uint64_t offset, std::span<const iovec> parts) const;
  // A further descriptor, the caller's.
  int open_again() const;

 private:
  // What a look at a file tells of it.
  struct Seen {
    Identity identity;
    // When the inode was made, which tells it from a later one of the same number. 0: the file
    // system does not say.
    std::int64_t made_at_ns = 0;
    std::int64_t changed_at_ns = 0;
    mode_t mode = 0;
  };
  // Has it open while it lives.
  class Use;

  RegularFile(std::string path, std::string name, Confinement confinement);

  // At the file that `fd` has open; with a path, at what that leads to. False, and errno, where
  // there is none, or none that may be looked at.
  static bool look(Seen& seen, int fd, const char* path = "");
  void require_regular(const Seen& seen) const;
  // A descriptor and what it has open. Below 0, and errno, where there is no such file.
  int open_path(Seen& seen) const;
  int open_same() const;

  std::string path_;
  std::string name_;  // empty: as path_; there may be 100,000 of them
  Confinement confinement_;
  Seen seen_;
  mutable PooledDescriptor descriptor_;
};

}  // namespace npyfs
