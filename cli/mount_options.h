// SPDX-License-Identifier: Apache-2.0
//
// What stands behind -o, as mount(8) and fstab pass it.

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/command_line.h"

namespace npyfs {

// Cuts at commas; "\," is a comma and "\\" a backslash within a value. Empty parts vanish.
std::vector<std::string> split_mount_options(std::string_view text);

// Applies the options of one -o: long options by their names, mount(8)'s generic ones (dropped
// where a read-only mount has no use for them), libfuse's. `source=` appends to the sources. Throws
// kUsage for any other.
void apply_mount_options(CommandLine& command_line, std::string_view text);

}  // namespace npyfs
