// SPDX-License-Identifier: Apache-2.0
//
// An array as a flat file: header, then data.

#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "formats/arrays/dataset.h"
#include "fs/file.h"

namespace npyfs {

// How the file is read: "native" (by the kernel), "mapped", "decoded".
inline constexpr const char* kAccessXattr = "user.npyfs.access";

// Immutable; any thread.
class NpyFile : public File {
 public:
  NpyFile(NamedArray array, std::uint64_t header_align);

  const NamedArray& array() const { return array_; }
  std::uint64_t nbytes() const override { return header_nbytes_ + array_.array->nbytes(); }
  void plan_read(ByteRange range, Plan& plan) const override;
  const std::vector<SourcePtr>& sources() const override { return array_.sources; }

  // Looks at kMostLooks of its sources, the next ones each time, but not twice within one second.
  // Behind a network each look may take a millisecond. A file that the kernel may read is looked at
  // each time: no read will find the change.
  static constexpr std::size_t kMostLooks = 256;
  void check_unchanged(std::int64_t second) const override;
  // As many parts of sources, not twice within one second either.
  void check_parts(std::int64_t second) const override;
  void require_unchanged() const override;

  // The source, where it is a .npy file that is shown as it is.
  std::optional<int> open_backing() const override;

  // Whether it is all of a source, and nothing else.
  bool is_source() const { return is_source_; }
  // Whether all of its sources know theirs, see ByteSource.
  bool knows_its_files() const { return knows_its_files_; }
  // Where the data begins.
  std::uint64_t header_nbytes() const { return header_nbytes_; }
  // What is before the data; empty where it comes from the file that the array is.
  const std::string& header() const { return header_; }

  // What the array is, for `getfattr -d`.
  Xattrs xattrs() const override;
  // Of an array that is its own source of chunks, and nobody else's array.
  std::optional<std::uint64_t> own_chunks() const override;

 private:
  NamedArray array_;
  bool as_it_is_;   // the header, too, comes from the file that the array is
  bool is_source_;  // all of that file, and nothing else, is shown
  bool knows_its_files_;
  std::string header_;
  std::uint64_t header_nbytes_ = 0;
  mutable std::atomic<std::int64_t> checked_second_{-1};
  mutable std::atomic<std::int64_t> parts_checked_second_{-1};
  mutable std::atomic<std::size_t> next_part_{0};
  mutable std::atomic<std::uint64_t> asked_at_change_{0};  // as count_changed_sources() counts
  mutable std::atomic<std::size_t> next_look_{0};  // in array_.sources, counted on past their end
};

}  // namespace npyfs
