// SPDX-License-Identifier: Apache-2.0
//
// Bytes in memory that count how they are read, and that fail or change when they are told to.

#pragma once

#include <atomic>
#include <cerrno>
#include <cstring>
#include <string>

#include "formats/bytes/byte_source.h"
#include "formats/bytes/error.h"

namespace npyfs::testing {

class FakeSource : public ByteSource {
 public:
  FakeSource(std::string name, std::string bytes, std::int64_t mtime_ns = 0)
      : ByteSource(std::move(name), bytes.size(), mtime_ns), bytes_(std::move(bytes)) {}

  const std::string& bytes() const { return bytes_; }
  // Before anything has been read.
  void flip(std::uint64_t offset) { bytes_[offset] = static_cast<char>(bytes_[offset] ^ 1); }

  std::uint64_t reads() const { return reads_; }
  std::uint64_t read_nbytes() const { return read_nbytes_; }
  void forget_reads() const { reads_ = read_nbytes_ = 0; }

  // From now on reading throws kIo, or no longer does.
  void set_failing(bool failing) const { failing_ = failing; }
  // From now on check_unchanged() throws.
  void set_changed() const { changed_ = true; }

  // How often it was asked whether it has changed.
  std::uint64_t looks() const { return looks_; }

  void check_unchanged() const override {
    ++looks_;
    if (changed_) {
      throw Error(ErrorKind::kChanged, name() + " has changed");
    }
  }
  bool changed() const override { return changed_; }

 private:
  void do_read(std::uint64_t offset, std::span<std::byte> out) const override {
    ++reads_;
    read_nbytes_ += out.size();
    if (failing_) {
      throw Error(ErrorKind::kIo, name() + ": cannot read", EIO);
    }
    std::memcpy(out.data(), bytes_.data() + offset, out.size());
  }

  std::string bytes_;
  mutable std::atomic<std::uint64_t> reads_{0};
  mutable std::atomic<std::uint64_t> read_nbytes_{0};
  mutable std::atomic<std::uint64_t> looks_{0};
  mutable std::atomic<bool> failing_{false};
  mutable std::atomic<bool> changed_{false};
};

}  // namespace npyfs::testing
