// SPDX-License-Identifier: Apache-2.0
//
// An array as a flat file: header, then data.

#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "formats/arrays/dataset.h"

namespace npyfs {

// Immutable; any thread.
class NpyFile {
 public:
  NpyFile(NamedArray array, std::uint64_t header_align);

  const NamedArray& array() const { return array_; }
  std::uint64_t nbytes() const { return header_nbytes_ + array_.array->nbytes(); }
  std::int64_t mtime_ns() const { return mtime_ns_; }

  // Appends the pieces of [offset, offset + nbytes) of the file, clipped at its end; or, once the
  // plan is full, of the beginning of that.
  void plan_read(std::uint64_t offset, std::uint64_t nbytes, Plan& plan) const;

  // Throws kChanged if one of its sources has been found changed.
  void require_unchanged() const;
  // Looks at all its sources, but not twice within a second; throws kChanged.
  void check_unchanged() const;

 private:
  NamedArray array_;
  bool as_it_is_;  // the header, too, comes from the file that the array is
  std::string header_;
  std::uint64_t header_nbytes_ = 0;
  std::int64_t mtime_ns_ = 0;
  mutable std::atomic<std::int64_t> checked_second_{-1};
};

}  // namespace npyfs
