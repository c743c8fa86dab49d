// SPDX-License-Identifier: Apache-2.0
//
// The time that a block of a virtual array may take.

#pragma once

#include "formats/hdf5/patience.h"

namespace npyfs {

// Ends what takes too long: of blocks that are decoded within each other the outermost one's time
// counts. They are all decoded by the thread that asks for it.
class DecodeTime {
 public:
  // `patience` outlives it.
  explicit DecodeTime(const Patience& patience);
  ~DecodeTime();
  DecodeTime(const DecodeTime&) = delete;
  DecodeTime& operator=(const DecodeTime&) = delete;

  // Of the block that this thread decodes, if any. Throws kIo: not for good, as what is damaged,
  // for storage may have stalled.
  static void require_left();

 private:
  static thread_local const DecodeTime* outermost_;
  const Patience& patience_;
  Patience::Clock::time_point end_;
};

}  // namespace npyfs
