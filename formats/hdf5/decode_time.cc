// SPDX-License-Identifier: Apache-2.0

#include "formats/hdf5/decode_time.h"

#include <fmt/format.h>

#include "formats/bytes/error.h"

namespace npyfs {

thread_local const DecodeTime* DecodeTime::outermost_ = nullptr;

DecodeTime::DecodeTime(const Patience& patience)
    : patience_(patience), end_(patience.now() + patience.virtual_block) {
  if (outermost_ == nullptr) {
    outermost_ = this;
  }
}

DecodeTime::~DecodeTime() { outermost_ = outermost_ == this ? nullptr : outermost_; }

void DecodeTime::require_left() {
  if (outermost_ != nullptr && outermost_->patience_.now() > outermost_->end_) {
    throw Error(
        ErrorKind::kIo,
        fmt::format("a block of a virtual array takes more than {} s to be put together out "
                    "of other chunks; storage is slow, or the file crafted",
                    outermost_->patience_.virtual_block.count()));
  }
}

}  // namespace npyfs
