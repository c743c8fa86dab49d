// SPDX-License-Identifier: Apache-2.0
//
// A table made of several, one behind the other.

#pragma once

#include <vector>

#include "formats/format.h"

namespace npyfs {

// The tables' records in order. Fields are matched by name; a table without a field lacks it in all
// its records, and where the others have texts, has empty ones. Keys only where all tables (but
// empty ones) have keys of one kind. One table is returned as it is. Throws kUnsupported where a
// field is bytes here and of known type there.
TablePtr concatenate(std::vector<TablePtr> tables);

}  // namespace npyfs
