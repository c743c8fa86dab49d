// SPDX-License-Identifier: Apache-2.0
//
// npyfs fill

#pragma once

#include "cli/command_line.h"

namespace npyfs {

// Completes the kept arrays of the data set in --cache-dir, as a mount with the same options would
// find them; the exit code: 1 where one that should be kept is not complete. SIGINT and SIGTERM end
// the process as ever, once what was read is written.
int run_fill(const CommandLine& command_line);

}  // namespace npyfs
