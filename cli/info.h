// SPDX-License-Identifier: Apache-2.0
//
// npyfs info

#pragma once

#include <set>
#include <string>

#include "cli/command_line.h"
#include "formats/arrays/dataset.h"

namespace npyfs {

// Prints what a mount would show; the exit code. Reads what opening reads, no records.
int run_info(const CommandLine& command_line);

// What info needs to know of the machine.
struct ReadWays {
  // Why the kernel cannot read by itself what it could elsewhere; empty where it may.
  std::string why_not_native;
  // Arrays that are complete in the cache folder.
  std::set<const Array*> kept;
};

// A table per split, for people.
std::string info_text(const Dataset& dataset, const ReadWays& ways = {});

// {"splits": [{"name", "records", "arrays": [{"name", "dtype", "shape", "records", "nbytes",
// "storage", "access", "format", "sources"}]}], "attrs": {...}}, for programs. "records" of a split
// is null where it has none. Where there are any, a split also has "groups" (each like a split) and
// "attrs", an array "attrs", and the whole "arrays" at its root. "not_native" is
// ReadWays::why_not_native, where that concerns an array.
std::string info_json(const Dataset& dataset, const ReadWays& ways = {});

}  // namespace npyfs
