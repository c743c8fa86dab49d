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
#include <optional>

#include "formats/bytes/verifier.h"

namespace npyfs {

// Any thread; asking for an intact record takes no lock as long as a thread asks for the same
// checksums. These may still grow: a record keeps its number.
class VerifiedRecords final : public Verifier {
 public:
  // With kNever nothing is ever checked.
  explicit VerifiedRecords(Verify verify);
  ~VerifiedRecords() override;

  // Called before each record is checked, and while a large one is read; throws when nobody will
  // want the answer any more. To be set before there are threads.
  void set_proceed(std::function<void()> proceed);

  // Whether every record of `guard` is known to match its checksum.
  bool known_intact(const Guard& guard) const;

  bool verifies() const override;

 private:
  // A record that does not match is remembered, too: it is read only once.
  std::optional<Error> find_fault(const Guard& guard, const ReadWindow& window) const override;

  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace npyfs
