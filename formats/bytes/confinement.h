// SPDX-License-Identifier: Apache-2.0
//
// With -o allow_other, others read through the mount what they may not read themselves: files that
// the user did not name must lie where the user meant.

#pragma once

#include <memory>
#include <string>
#include <vector>

struct stat;  // sys/stat.h

namespace npyfs {

// Which folders files must lie below, whatever links lead to them. Immutable; copies are cheap.
class Confinement {
 public:
  // Nothing is forbidden.
  Confinement() = default;
  // Below any of `folders`; a folder that is not there allows nothing.
  explicit Confinement(const std::vector<std::string>& folders);

  // Throws kUnsupported, naming `name`, unless the file or folder that `fd` has open lies within.
  // To be asked of the descriptor that is read from: what a path leads to may change between two
  // looks. A file whose place cannot be found out is refused.
  void require_within(int fd, const std::string& name) const;
  // The same for what `path` leads to now. Throws kNotFound, kIo too.
  void require_path_within(const std::string& path, const std::string& name) const;
  // stat(2) of what `path` leads to. False, and errno, where that cannot be told; EXDEV where it
  // does not lie within.
  bool look_at(const std::string& path, struct stat& status) const;

 private:
  bool holds(int fd) const;

  // Real paths of folders; null: nothing is forbidden.
  std::shared_ptr<const std::vector<std::string>> allowed_;
};

}  // namespace npyfs
