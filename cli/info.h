// SPDX-License-Identifier: Apache-2.0
//
// npyfs info

#pragma once

#include <string>

#include "cli/command_line.h"
#include "formats/arrays/dataset.h"

namespace npyfs {

// Prints what a mount would show; the exit code. Reads what opening reads, no records.
int run_info(const CommandLine& command_line);

// A table per split, for people.
std::string info_text(const Dataset& dataset);

// {"splits": [{"name", "records", "arrays": [{"name", "dtype", "shape", "records", "nbytes",
// "storage", "format", "sources"}]}], "attrs": {...}}, for programs. "records" of a split is null
// where it has none. Where there are any, a split also has "groups" (each like a split) and
// "attrs", an array "attrs", and the whole "arrays" at its root.
std::string info_json(const Dataset& dataset);

}  // namespace npyfs
