// SPDX-License-Identifier: Apache-2.0

#include "fs/file.h"

namespace npyfs {

const std::vector<SourcePtr>& File::sources() const {
  static const std::vector<SourcePtr> none;
  return none;
}

}  // namespace npyfs
