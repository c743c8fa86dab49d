// SPDX-License-Identifier: Apache-2.0
//
// Raw mode: a JSON object a line, {"key", "wav", "txt"[, "start", "end"]}.

#pragma once

#include <memory>
#include <string>

#include "formats/opening.h"
#include "formats/record_table.h"

namespace npyfs {

// `folder`: of the list. Throws kCorrupt for lines that are none, kNotFound, kIo, kUnsupported for
// files that cannot be opened (with context.permissive their lines are left out).
std::shared_ptr<const RecordTable> open_raw_list(const SourcePtr& list, const std::string& folder,
                                                 OpenContext& context);

}  // namespace npyfs
