// SPDX-License-Identifier: Apache-2.0
//
// Which records have been checked against their checksums in this mount, and which were found
// damaged. A record is read whole and checked before the first of its bytes is answered; after
// that one bit remembers it.

#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "formats/format.h"

namespace npyfs {

// Any thread; checking an intact record costs one atomic load.
class VerifiedRecords {
 public:
  explicit VerifiedRecords(Verify verify);
  ~VerifiedRecords();

  // Whether records [first, first + count) of `table` need no (further) check.
  bool known_intact(const Guard& guard) const;

  // Returns once every record of `guard` is known to match its checksum; throws kCorrupt for the
  // first that does not.
  void require_intact(const Guard& guard);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace npyfs
