// SPDX-License-Identifier: Apache-2.0

#include "fs/text_files.h"

#include <algorithm>
#include <span>

namespace npyfs {

void AttributesFile::plan_read(ByteRange range, Plan& plan) const {
  range.end = std::min<std::uint64_t>(range.end, bytes_.size());
  if (!range.empty()) {
    plan.add_memory(std::as_bytes(std::span(bytes_)).data() + range.begin, range.nbytes());
  }
}

}  // namespace npyfs
