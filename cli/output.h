// SPDX-License-Identifier: Apache-2.0
//
// What commands print to stdout.

#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace npyfs {

// Writes to stdout. Throws kIo.
void print_all(std::string_view text);

// Rows in columns as wide as need be, each line indented by `indent`. All rows have as many cells.
std::string table_text(const std::vector<std::vector<std::string>>& rows, std::string_view indent);

}  // namespace npyfs
