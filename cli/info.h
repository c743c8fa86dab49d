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

// A table per split, for people. `why_not_native`: why the kernel cannot read by itself what it
// could elsewhere; empty where it may.
std::string info_text(const Dataset& dataset, const std::string& why_not_native = {});

// {"splits": [{"name", "records", "arrays": [{"name", "dtype", "shape", "records", "nbytes",
// "storage", "access", "format", "sources"}]}], "attrs": {...}}, for programs. "records" of a split
// is null where it has none. Where there are any, a split also has "groups" (each like a split) and
// "attrs", an array "attrs", and the whole "arrays" at its root. "not_native" is `why_not_native`,
// where that concerns an array.
std::string info_json(const Dataset& dataset, const std::string& why_not_native = {});

}  // namespace npyfs
