// SPDX-License-Identifier: Apache-2.0
//
// An open regular file.

#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <optional>
#include <span>
#include <string>

#include "formats/bytes/confinement.h"
#include "formats/bytes/identity.h"

namespace npyfs {

// Nanoseconds since the epoch.
inline std::int64_t to_ns(const timespec& time) {
  return static_cast<std::int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

Identity identity_of(const struct stat& status);
// The identity of what is at `path`. Nothing, and errno, if it cannot be looked at or lies outside
// of `confinement`.
std::optional<Identity> identity_of(const std::string& path, const Confinement& confinement = {});

// Reading needs one system call. Any thread.
class RegularFile {
 public:
  // Nothing, and errno, where there is no such file. `name` is what messages call it. Throws kIo,
  // and kUnsupported for what is not a regular file (a FIFO is never opened: that could wait for
  // ever) or lies outside of `confinement`.
  static std::optional<RegularFile> open(const std::string& path, const std::string& name,
                                         const Confinement& confinement);
  RegularFile(RegularFile&& other) noexcept;
  RegularFile& operator=(RegularFile&&) = delete;
  ~RegularFile();

  // When it was opened.
  const Identity& first_identity() const { return first_; }
  std::uint64_t nbytes() const { return first_.nbytes; }
  // Looked at anew. Throws kIo.
  Identity identity() const;
  // When its content or its inode last changed, nanoseconds since the epoch; looked at anew.
  std::int64_t changed_at_ns() const;
  // Fills `out` from `offset` on: how many bytes there were. Throws kIo.
  std::size_t read(std::uint64_t offset, std::span<std::byte> out) const;
  // Open as long as this lives.
  int descriptor() const { return fd_; }

 private:
  RegularFile(int fd, std::string name) : fd_(fd), name_(std::move(name)) {}

  struct stat look() const;

  int fd_;
  std::string name_;
  Identity first_;
};

}  // namespace npyfs
