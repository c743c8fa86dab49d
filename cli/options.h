// SPDX-License-Identifier: Apache-2.0
//
// The arguments of the program become a CommandLine.

#pragma once

#include <string>
#include <vector>

#include "cli/command_line.h"

namespace npyfs {

// `arguments` without the program's name. Without a verb it is a mount, as mount(8) calls it. Reads
// the files of --class-names and --split-list, and looks which SOURCEs are paths. Throws kUsage;
// kNotFound, kIo, kUnsupported and kTooLarge for those files.
CommandLine parse_command_line(const std::vector<std::string>& arguments);

}  // namespace npyfs
