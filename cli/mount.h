// SPDX-License-Identifier: Apache-2.0
//
// npyfs mount

#pragma once

#include "cli/command_line.h"

namespace npyfs {

// Mounts and serves; the exit code. Throws with nothing left mounted.
int run_mount(const CommandLine& command_line);

}  // namespace npyfs
