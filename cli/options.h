// SPDX-License-Identifier: Apache-2.0
//
// The arguments of the program become a CommandLine.

#pragma once

#include <string>
#include <vector>

#include "cli/command_line.h"

namespace npyfs {

// `arguments` without the program's name. Without a verb it is a mount, as mount(8) calls it. Reads
// the file of --class-names and nothing else. Throws kUsage; kNotFound and kIo for that file.
CommandLine parse_command_line(const std::vector<std::string>& arguments);

}  // namespace npyfs
