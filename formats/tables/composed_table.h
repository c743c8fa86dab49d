// SPDX-License-Identifier: Apache-2.0
//
// Tables made of other tables' records: concatenations, parts, joins, tables without some records.

#pragma once

#include <cstdint>
#include <vector>

#include "formats/record_table.h"
#include "formats/tables/record_map.h"

namespace npyfs {

// The records of `tables`, one table after another; the table itself where there is one. A field
// has the same name in all of them; one that a table lacks is absent in its records, a text empty.
// If some tables have integer keys and others text keys, the result has none. Throws kUnsupported
// where a field's items are of known type in one table and bytes in another.
TablePtr concatenate(std::vector<TablePtr> tables);

// Row i is the record rows[i] of `table`; `table` itself where these are all, in their order.
TablePtr select_rows(TablePtr table, const RecordMap& rows);

// `table` without the records in `left_out`, which may be unsorted and repeat.
TablePtr leave_out(TablePtr table, std::vector<std::uint64_t> left_out);

// The items of all columns, one column after another.
std::shared_ptr<const Column> concatenate_columns(
    std::vector<std::shared_ptr<const Column>> columns);

}  // namespace npyfs
