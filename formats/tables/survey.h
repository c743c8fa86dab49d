// SPDX-License-Identifier: Apache-2.0
//
// One look at every item of a column, to find out what array they make together.

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "formats/bytes/fault_tally.h"
#include "formats/damage_list.h"
#include "formats/record_table.h"

namespace npyfs {

struct Survey {
  std::uint64_t records = 0;
  // The type and shape of the first item that is present. A scalar has no rows to be ragged in.
  DType dtype;
  Shape shape;
  bool empty = true;  // no item is present

  bool all_alike = true;   // every item present has that dtype and shape
  bool same_rows = true;   // every item present has that dtype, and that shape but for axis 0
  std::string odd_record;  // the first that differs, and how
  // Items differ in type, but one type can hold them all, and the column can convert them. `dtype`
  // is that type: the longest text, or float32 for float32 and float64.
  bool promoted = false;
  std::string odd_dtype;  // the first such item, and how it differs

  std::uint64_t absent = 0;
  std::uint64_t first_absent = 0;
  // Rows (items along axis 0) of each record; empty while all are alike and none is absent.
  std::vector<std::uint64_t> rows;
  // Records that cannot be read, with why. A damaged record has the rows that are known of it, else
  // the common shape, else the rows its size tells.
  std::shared_ptr<const DamageList> damaged;
  FaultTally faults{"damaged records"};  // of `damaged`
  // Damaged records for which nothing tells rows: they have none.
  std::uint64_t unsized = 0;
  std::uint64_t first_unsized = 0;
};

// Inspects every item, unless the column knows that all are alike. If an item contradicts the
// declaration and `verifier` says that its checksum fails, it counts as damaged.
Survey survey(const Column& column, const RecordTable& table, const Verifier& verifier);

}  // namespace npyfs
