// SPDX-License-Identifier: Apache-2.0
//
// npyfs cache

#pragma once

#include <string>
#include <vector>

#include "cli/command_line.h"
#include "kept/kept_rows.h"

namespace npyfs {

// Lists, drops or checks what lies in a cache folder; the exit code: 1 where a check has found
// something bad, or something could not be dropped. Makes no folder.
int run_cache(const CommandLine& command_line);

// A table, for people.
std::string kept_text(const std::vector<KeptRow>& rows);

// [{"array", "source", "name", "state", "nbytes", "kept_nbytes", "disk_nbytes", "used_at", "open",
// "fault"}], for programs. "state" is "complete", "part" or "bad", "used_at" is in seconds since
// the epoch, "fault" is there for what is bad.
std::string kept_json(const std::vector<KeptRow>& rows);

// Whether a user who says `name` means the array: by its path in the mount, with or without ".npy",
// by the beginning of its file's name, or by the path of its first source.
bool is_named(const KeptRow& row, const std::string& name);

}  // namespace npyfs
