// SPDX-License-Identifier: Apache-2.0
//
// Which recordings the rows of a split's x come from, as attributes say it that a format knows
// (RowAttributes in formats/format.h). They are true of all rows in their order only, and have to
// follow where rows are cut or joined.

#pragma once

#include <cstdint>
#include <string>

#include "formats/bytes/value.h"
#include "formats/tables/record_map.h"

namespace npyfs {

// Whether the attributes say where recordings of the split begin or end.
bool has_recordings(const Dict& attributes, const std::string& split);

// Of `rows` rows only `kept` are left: recordings outside are left out, the others count from its
// begin and end with it. What is not understood (other numbers than rows of x) is left out whole;
// false then.
bool cut_recordings(Dict& attributes, const std::string& split, std::uint64_t rows,
                    const Bounds& kept);

// For users, where cut_recordings gives false.
std::string left_out_recordings(const std::string& split);
// The same of append_recordings.
std::string unjoined_recordings(const std::string& split);

// The rows have no order of recordings any more.
void drop_recordings(Dict& attributes, const std::string& split);

// Those of `more` behind those of `all`, which has `rows` rows. Where one of the two does not have
// them, or other numbers than rows, they are left out of `all`; false then.
bool append_recordings(Dict& all, const Dict& more, const std::string& split, std::uint64_t rows);

// The split that an attribute of that name is about; empty for one that is none of these.
std::string recordings_split(const std::string& attribute);

}  // namespace npyfs
