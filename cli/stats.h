// SPDX-License-Identifier: Apache-2.0
//
// npyfs stats: the figures of a live mount, as fs/SEMANTICS.md lists them.

#pragma once

#include <string>

#include "cli/command_line.h"
#include "formats/bytes/value.h"

namespace npyfs {

// A table of what .npyfs/stats said; with what the mount did each second since it said `before`, if
// that is not null. Throws kCorrupt where it is not what a mount says.
std::string stats_text(const Value& now, const Value* before);

// One line of what the mount did between two moments.
std::string stats_line(const Value& now, const Value& before);

// Prints the figures of the mount that the path is or lies in; with --watch every second, until
// the mount has gone (throws then) or the caller is killed. Throws kNotFound where it is no npyfs
// mount.
int run_stats(const CommandLine& command_line);

}  // namespace npyfs
