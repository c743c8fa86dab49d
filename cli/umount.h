// SPDX-License-Identifier: Apache-2.0
//
// npyfs umount

#pragma once

#include <string>
#include <vector>

#include "cli/command_line.h"

namespace npyfs {

// Unmounts each mountpoint in turn; the exit code. Throws for what is not an npyfs mount, and for
// one that is in use.
int run_umount(const CommandLine& command_line);

// "1234 (python3)" for each process that has a file below `folder` open, mapped, or as its working
// directory; of those that the caller may look at.
std::vector<std::string> processes_using(const std::string& folder);

}  // namespace npyfs
