// SPDX-License-Identifier: Apache-2.0

#include "formats/table_overlay.h"

namespace npyfs {

std::vector<SourcePtr> TableOverlay::sources() const {
  std::vector<SourcePtr> all = base_->sources();
  for (const TablePtr& table : others_) {
    const std::vector<SourcePtr> own = table->sources();
    all.insert(all.end(), own.begin(), own.end());
  }
  return all;
}

}  // namespace npyfs
