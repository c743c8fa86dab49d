// SPDX-License-Identifier: Apache-2.0
//
// npyfs index: finds out ahead what a mount would have to find out.

#pragma once

#include "cli/command_line.h"

namespace npyfs {

// Returns the exit code. Throws as loading a data set does, and kIo where the index cannot be
// written.
int run_index(const CommandLine& command_line);

}  // namespace npyfs
