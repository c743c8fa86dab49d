// SPDX-License-Identifier: Apache-2.0
//
// Records that are joined by what a table says of their keys: an utterance's speaker.

#pragma once

#include <string>

#include "formats/record_table.h"

namespace npyfs {

// `table` with other keys: for each record what `map` says of it. `map` is a text field of `table`,
// else a file with lines of key and value; an empty file is the identity. Throws kCorrupt where it
// lacks a key or has one twice, or a value is damaged or `verifier`
// says so; kUsage where it is neither.
TablePtr map_keys(TablePtr table, const std::string& map, const Verifier& verifier);

}  // namespace npyfs
