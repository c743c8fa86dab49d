// SPDX-License-Identifier: Apache-2.0
//
// Where the records of one source lie: three numbers while their stride and size are all equal,
// 12 bytes a record otherwise.

#pragma once

#include <cstdint>
#include <vector>

#include "formats/bytes/byte_range.h"

namespace npyfs {

// Built by one thread, then immutable.
class ExtentColumn {
 public:
  struct Place {
    std::uint64_t offset = 0;
    std::uint64_t nbytes = 0;
  };

  void append(std::uint64_t offset, std::uint64_t nbytes);

  std::uint64_t size() const { return size_; }
  Place operator[](std::uint64_t index) const {
    if (equal_) {
      return {first_ + index * stride_, nbytes_};
    }
    return {offsets_[index], lengths_.empty() ? long_lengths_[index] : lengths_[index]};
  }
  // Whether every record has one size and one distance to the next.
  bool equal() const { return equal_; }
  std::uint64_t stride() const { return stride_; }
  // How many records from `index` on lie back to back without a gap and have one size; at least 1.
  std::uint64_t run(std::uint64_t index) const {
    return equal_ && stride_ == nbytes_ ? size_ - index : 1;
  }
  void shrink();

 private:
  void spread();

  bool equal_ = true;
  std::uint64_t size_ = 0;
  std::uint64_t first_ = 0;
  std::uint64_t stride_ = 0;
  std::uint64_t nbytes_ = 0;
  std::vector<std::uint64_t> offsets_;
  std::vector<std::uint32_t> lengths_;       // while every length fits
  std::vector<std::uint64_t> long_lengths_;  // else
};

}  // namespace npyfs
