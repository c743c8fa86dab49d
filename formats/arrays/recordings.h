// SPDX-License-Identifier: Apache-2.0
//
// Attributes that say which recordings the rows of a split's x come from (RowAttributes in
// formats/format.h). They describe all rows in order, and must be updated when rows are cut or
// joined.

#pragma once

#include <cstdint>
#include <string>

#include "formats/bytes/value.h"
#include "formats/tables/record_map.h"

namespace npyfs {

// Whether the attributes say where recordings of the split begin or end.
bool has_recordings(const Dict& attributes, const std::string& split);

// Updates the attributes after `rows` rows were cut to `kept`. Recordings outside are left out; the
// others are clipped, and count from kept.begin. If the attributes are not numbers of rows, removes
// them and returns false.
bool cut_recordings(Dict& attributes, const std::string& split, std::uint64_t rows,
                    const Bounds& kept);

// The warning to give if cut_recordings returns false.
std::string left_out_recordings(const std::string& split);
// The same for append_recordings.
std::string unjoined_recordings(const std::string& split);

// Removes the attributes: the rows are no longer in the order of the recordings.
void drop_recordings(Dict& attributes, const std::string& split);

// Appends the recordings of `more` to those of `all`, which has `rows` rows. If one of the two
// lacks them, or has numbers that are not rows, removes them from `all` and returns false.
bool append_recordings(Dict& all, const Dict& more, const std::string& split, std::uint64_t rows);

// The split that the attribute is about; empty if it says nothing of recordings.
std::string recordings_split(const std::string& attribute);

}  // namespace npyfs
