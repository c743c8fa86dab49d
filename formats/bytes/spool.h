// SPDX-License-Identifier: Apache-2.0
//
// A file without a name that keeps what was decoded: it takes room in its directory while the
// process lives, and is gone with it however it ends.

#pragma once

#include <memory>
#include <span>
#include <string>

#include "formats/bytes/byte_source.h"

namespace npyfs {

// Filled by one thread; what finish() returned may be read by any.
class Spool {
 public:
  // In `directory`, which is made where it is missing (not its parents). Throws kNotFound, kIo.
  static std::shared_ptr<Spool> create(const std::string& directory);
  ~Spool();
  Spool(const Spool&) = delete;
  Spool& operator=(const Spool&) = delete;

  const std::string& directory() const { return directory_; }

  // Begins another stream. Streams follow each other; one that was not finished is dropped.
  void begin();
  // Throws kIo, when the disk is full, say.
  void append(std::span<const std::byte> bytes);
  // What was appended since the last finish() is given back to the disk.
  void drop() noexcept;
  // What was appended since begin(); the identity is that of `base`.
  static SourcePtr finish(const std::shared_ptr<Spool>& spool, SourcePtr base);

  // Fills `out`. Throws kIo.
  void read(std::uint64_t offset, std::span<std::byte> out) const;

 private:
  Spool(std::string directory, int fd) : directory_(std::move(directory)), fd_(fd) {}
  void flush();

  std::string directory_;
  int fd_;
  std::vector<std::byte> buffer_;
  std::uint64_t begin_ = 0;  // of the stream being written
  std::uint64_t end_ = 0;    // of what is in the file
};

}  // namespace npyfs
