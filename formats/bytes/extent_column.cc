// SPDX-License-Identifier: Apache-2.0

#include "formats/bytes/extent_column.h"

#include <limits>

namespace npyfs {

void ExtentColumn::append(std::uint64_t offset, std::uint64_t nbytes) {
  if (size_ == 0) {
    first_ = offset;
    nbytes_ = nbytes;
    stride_ = nbytes;
  } else if (size_ == 1 && equal_ && offset >= first_) {
    stride_ = offset - first_;
  }
  if (equal_ && (nbytes != nbytes_ || offset != first_ + size_ * stride_)) {
    spread();
  }
  if (!equal_) {
    if (long_lengths_.empty() && nbytes > std::numeric_limits<std::uint32_t>::max()) {
      long_lengths_.assign(lengths_.begin(), lengths_.end());
      lengths_ = {};
      long_lengths_.push_back(nbytes);
    } else if (!long_lengths_.empty()) {
      long_lengths_.push_back(nbytes);
    } else {
      lengths_.push_back(static_cast<std::uint32_t>(nbytes));
    }
    offsets_.push_back(offset);
  }
  ++size_;
}

void ExtentColumn::spread() {
  const bool is_long = nbytes_ > std::numeric_limits<std::uint32_t>::max();
  offsets_.reserve(size_ + 1);
  for (std::uint64_t i = 0; i < size_; ++i) {
    offsets_.push_back(first_ + i * stride_);
    if (is_long) {
      long_lengths_.push_back(nbytes_);
    } else {
      lengths_.push_back(static_cast<std::uint32_t>(nbytes_));
    }
  }
  equal_ = false;
}

void ExtentColumn::shrink() {
  offsets_.shrink_to_fit();
  lengths_.shrink_to_fit();
  long_lengths_.shrink_to_fit();
}

}  // namespace npyfs
