// SPDX-License-Identifier: Apache-2.0
//
// An array as a flat file: header, then data.

#pragma once

#include <atomic>
#include <cstddef>
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
  // Looks at kMostLooks of its sources, the next ones each time, but not twice within one `second`
  // (of any clock); throws kChanged. Behind a network each look may take a millisecond.
  static constexpr std::size_t kMostLooks = 256;
  void check_unchanged(std::int64_t second) const;

 private:
  NamedArray array_;
  bool as_it_is_;  // the header, too, comes from the file that the array is
  std::string header_;
  std::uint64_t header_nbytes_ = 0;
  std::int64_t mtime_ns_ = 0;
  mutable std::atomic<std::int64_t> checked_second_{-1};
  mutable std::atomic<std::size_t> next_look_{0};  // in array_.sources, counted on past their end
};

}  // namespace npyfs
