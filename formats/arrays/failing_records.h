// SPDX-License-Identifier: Apache-2.0
//
// --verify=mount of records: which of them fail their checksums.

#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "formats/bytes/plan.h"
#include "formats/format.h"

namespace npyfs {

// Ascending, each once; warns of the first. `require_intact` throws kCorrupt for records that fail.
// Throws what it throws besides.
std::vector<std::uint64_t> find_failing(const RecordTable& table,
                                        const std::function<void(const Guard&)>& require_intact,
                                        const std::function<void(const std::string&)>& warn);

}  // namespace npyfs
