// SPDX-License-Identifier: Apache-2.0
//
// Records that are joined by what a table says of their keys: an utterance's speaker.

#pragma once

#include <string>

#include "formats/record_table.h"

namespace npyfs {

// `table` with each key replaced by its value in `map`: a text field of `table`, else a file with
// lines of key and value. With an empty file, keys stay. Throws kCorrupt if `map` lacks a key or
// has one twice, or if a value is damaged; kUsage if `map` is neither field nor file.
TablePtr map_keys(TablePtr table, const std::string& map, const Verifier& verifier);

}  // namespace npyfs
