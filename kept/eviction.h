// SPDX-License-Identifier: Apache-2.0
//
// What lies in a cache folder, and what has to go where it is too much.

#pragma once

#include <sys/stat.h>

#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "kept/disk_file.h"

namespace npyfs {

// The files of one array, as they were found.
struct KeptFiles {
  std::string name;
  std::optional<struct stat> map;
  std::optional<struct stat> part;
  std::optional<struct stat> complete;

  // What they take on the disk.
  std::uint64_t disk_nbytes() const;
  // When the array was last used or written to; 0 without a map.
  std::int64_t used_at_ns() const;
};

// Sorted by name. What else lies in the folder is not ours. Throws kIo.
std::vector<KeptFiles> find_kept_files(const DiskFolder& disk);
std::uint64_t disk_nbytes(const std::vector<KeptFiles>& files);

// Removes arrays, least recently used ones first, until about `nbytes` are free: complete ones as a
// whole, if nobody has them open; of those in part the last blocks, not if somebody has them open
// and used them within `spared_after_use`, and nothing of `except` or of arrays that were used
// since `spared_since_ns` (since the epoch). Arrays that are being written to are left alone. How
// many bytes that gave back. Throws kIo.
std::uint64_t evict(const DiskFolder& disk, std::uint64_t nbytes, const std::string& except,
                    std::chrono::seconds spared_after_use,
                    std::int64_t spared_since_ns = std::numeric_limits<std::int64_t>::max());

// Removes what processes left that died while they made an array, and data without a map. Throws
// kIo.
void clear_leftovers(const DiskFolder& disk);

// The name of a file that becomes the map of array `name`; no other process has the same.
std::string unfinished_map_name(const std::string& name, std::uint64_t number);

}  // namespace npyfs
