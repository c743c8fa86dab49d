// SPDX-License-Identifier: Apache-2.0
//
// With -o allow_other, others read through the mount what they may not read themselves: files that
// the user did not name must lie where the user meant.

#pragma once

#include <string>
#include <vector>

#include "formats/format.h"

namespace npyfs {

// Where context.confine says so, files must lie below `folder` or --base-dir, whatever links lead
// to them. Immutable.
class Confinement {
 public:
  Confinement(const std::string& folder, const OpenContext& context);

  // Opens a file if it may be. Throws as FileSource::open, and kUnsupported.
  SourcePtr open(const std::string& path, const std::string& name,
                 FileSource::Descriptor descriptor = FileSource::Descriptor::kKept) const;
  // For directories. Throws kUnsupported, naming `name`.
  void require_within(const std::string& real_path, const std::string& name) const;

 private:
  bool confined_;
  std::vector<std::string> allowed_;  // real paths of folders
};

}  // namespace npyfs
