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

// The text of a record's key, or of its index where there are no keys. An integer key joins the
// text key that it prints as.
std::string key_text(const RecordTable& table, std::uint64_t record);

// Throws kCorrupt where two records of `table`, which messages call `name`, have one key. A table
// without keys is fine.
void require_unique_keys(const RecordTable& table, const std::string& name);

// By key where both have keys, else row by row (unequal lengths throw kCorrupt). A key that the
// joined table has twice throws kCorrupt; the first is for require_unique_keys(). `first_name` and
// `joined_name` are for messages.
Join join_rows(const RecordTable& first, const RecordTable& joined, const std::string& first_name,
               const std::string& joined_name);

}  // namespace npyfs
