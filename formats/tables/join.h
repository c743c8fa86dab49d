// SPDX-License-Identifier: Apache-2.0
//
// Rows of one table for the records of another, by key.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "formats/record_table.h"

namespace npyfs {

struct Join {
  // For each record of the first table: its row in the joined one; meaningless where missing.
  std::vector<std::uint64_t> rows;
  // Records of the first table whose key the joined one lacks, ascending.
  std::vector<std::uint64_t> missing;
};

// The text of a record's key, or of its index if there are no keys. An integer key joins the text
// key with the same digits.
std::string key_text(const RecordTable& table, std::uint64_t record);

// Throws kCorrupt where two records of `table`, which messages call `name`, have one key. A table
// without keys is fine.
void require_unique_keys(const RecordTable& table, const std::string& name);

// Joins by key if both tables have keys, else row by row (unequal lengths throw kCorrupt). Throws
// kCorrupt if the joined table has a key twice; for the first table, call require_unique_keys().
// `first_name` and `joined_name` are for messages.
Join join_rows(const RecordTable& first, const RecordTable& joined, const std::string& first_name,
               const std::string& joined_name);

}  // namespace npyfs
