// SPDX-License-Identifier: Apache-2.0
//
// Whether records match their checksums: whoever reads has a verifier, and with it the choice of
// what is verified at all.

#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "formats/bytes/byte_range.h"
#include "formats/bytes/checksums.h"

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

// Any thread.
class Verifier {
 public:
  virtual ~Verifier() = default;

  // False if no record is ever verified.
  virtual bool verifies() const = 0;

  // The kCorrupt of the first record of `guard` that does not match its checksum; nothing where all
  // match, have none, or are not verified. What lies within `window` is compared there. Throws what
  // reading throws.
  std::optional<Error> fault_of(const Guard& guard, const ReadWindow& window = {}) const {
    return find_fault(guard, window);
  }
  bool is_intact(const Guard& guard) const { return !fault_of(guard); }
  // Throws what fault_of() returns.
  void require_intact(const Guard& guard, const ReadWindow& window = {}) const;

 private:
  virtual std::optional<Error> find_fault(const Guard& guard, const ReadWindow& window) const = 0;
};

// When the user wants records verified.
enum class Verify { kNever, kRead, kMount };

// Verifies each record whenever it is asked, and remembers nothing.
const Verifier& strict_verifier();
// Verifies nothing.
const Verifier& trusting_verifier();

// The kCorrupt of a record that does not match its checksum, once it has been read and compared;
// what lies within `window` is compared there. `proceed` as in read_checksum_of(). Throws what
// reading throws, kChanged where the source is another one by now.
std::optional<Error> find_mismatch(const Checksums& checksums, std::uint64_t record,
                                   const ReadWindow& window = {},
                                   const std::function<void()>& proceed = nullptr);

// The kCorrupt of a record that is known not to match.
Error mismatch_error(const Checksums& checksums, std::uint64_t record);

}  // namespace npyfs
