// SPDX-License-Identifier: Apache-2.0
//
// Which records have been checked against their checksums in this mount, and which were found
// damaged. A record is read whole and checked before the first of its bytes is answered; after
// that one bit remembers it.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "formats/format.h"

namespace npyfs {

// Bytes that have just been read, so that records within need not be read again to be checked.
struct ReadWindow {
  const ByteSource* source = nullptr;
  std::uint64_t offset = 0;
  std::span<const std::byte> bytes;

  bool holds(const Extent& extent) const {
    return extent.source == source && extent.offset >= offset &&
           lies_within(extent.offset - offset, extent.nbytes, bytes.size());
  }
};

// Any thread; asking for an intact record takes no lock as long as a thread stays in one table.
class VerifiedRecords {
 public:
  // With kNever nothing is ever checked.
  explicit VerifiedRecords(Verify verify);
  ~VerifiedRecords();

  // Called before each record is checked, and while a large one is read; throws when nobody will
  // want the answer any more. To be set before there are threads.
  void set_proceed(std::function<void()> proceed);

  // Whether every record of `guard` is known to match its checksum.
  bool known_intact(const Guard& guard) const;

  // Returns once every record of `guard` is known to match its checksum; throws kCorrupt for the
  // first that does not (remembered: it is read only once), or what reading throws. Records within
  // `window` are checked there.
  void require_intact(const Guard& guard, const ReadWindow& window = {});

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace npyfs
