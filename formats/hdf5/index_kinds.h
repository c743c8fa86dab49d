// SPDX-License-Identifier: Apache-2.0
//
// The kinds of chunk indexes of newer files that have a structure of their own.

#pragma once

#include <cstdint>

#include "formats/hdf5/index_entries.h"

namespace npyfs {

// Each hands over the chunks of the index whose header is at `address`; none where that is
// undefined. Throws kCorrupt.
void read_fixed_array(const IndexEntries& entries, std::uint64_t address);
void read_extensible_array(const IndexEntries& entries, std::uint64_t address);
void read_chunk_tree(const IndexEntries& entries, std::uint64_t address);

}  // namespace npyfs
