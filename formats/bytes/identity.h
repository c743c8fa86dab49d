// SPDX-License-Identifier: Apache-2.0
//
// What tells whether bytes are still those that were there before, without reading them.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace npyfs {

// Two things are the same if all fields are equal. A small value: a store may keep thousands.
struct Identity {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;  // 0: nothing is there
  std::uint64_t nbytes = 0;
  std::int64_t mtime_ns = 0;  // since the epoch

  bool operator==(const Identity&) const = default;
  bool exists() const { return inode != 0; }

  // "file:DEVICE:INODE:NBYTES:MTIME_NS", in decimal; "none" of what is not there. The first word
  // says what kind of identity it is: files are the only kind today.
  std::string text() const;
  // Nothing where `text` is not what text() writes, or of a kind that is not known.
  static std::optional<Identity> parse(std::string_view text);
};

}  // namespace npyfs
