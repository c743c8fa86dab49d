// SPDX-License-Identifier: Apache-2.0
//
// Pickled samples as the fields that are in them.

#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "formats/record_table.h"

namespace npyfs {

// Whether the payload of `record` is to be read as a pickle: because the field's extension says so
// or, where it has none and the format allows it, because that is what its bytes are: a pickle that
// begins at the first and stops at the last.
bool is_pickled(const Field& field, std::uint64_t record);

// The fields of pickled samples: of a dict one for each key, of a tuple of two `x` and `y`, else
// the sample itself. Those of a field that is not `x` are called <field>_<key> and <field>_y. Reads
// the structure of every record once; the bytes of arrays are mapped where they lie. `table` and
// the field's bytes must live as long as what is returned. Nothing, and a line to `warn`, where the
// samples stay bytes: they hold what only code could make, or are not alike.
std::optional<std::vector<Field>> make_pickle_fields(
    const Field& field, const RecordTable& table, const Verifier& verifier,
    const std::function<void(const std::string&)>& warn);

}  // namespace npyfs
