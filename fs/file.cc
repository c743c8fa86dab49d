// SPDX-License-Identifier: Apache-2.0

#include "fs/file.h"

namespace npyfs {

const std::vector<SourcePtr>& File::sources() const {
  static const std::vector<SourcePtr> none;
  return none;
}

void File::require_unchanged() const { npyfs::require_unchanged(sources()); }

}  // namespace npyfs
