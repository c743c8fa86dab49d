// SPDX-License-Identifier: Apache-2.0
//
// With -o allow_other, others read through the mount what they may not read themselves: files that
// the user did not name must lie where the user meant.

#pragma once

#include <string>
#include <vector>

#include "formats/bytes/byte_source.h"

namespace npyfs {

// Which folders files must lie below, whatever links lead to them. Immutable.
class Confinement {
 public:
  // Nothing is forbidden.
  Confinement() = default;
  // Below any of `folders`; of one that is not there nothing is allowed.
  explicit Confinement(const std::vector<std::string>& folders);

  // Opens a file if it may be. Throws as FileSource::open, and kUnsupported.
  SourcePtr open(const std::string& path, const std::string& name,
                 FileSource::Descriptor descriptor = FileSource::Descriptor::kKept) const;
  // Throws kUnsupported, naming `name`, unless `real_path` may be opened or listed.
  void require_within(const std::string& real_path, const std::string& name) const;

 private:
  bool confined_ = false;
  std::vector<std::string> allowed_;  // real paths of folders
};

}  // namespace npyfs
