// SPDX-License-Identifier: Apache-2.0
//
// Commands in scripts, which are run only where the user allows it.

#pragma once

#include <string>

#include "formats/bytes/byte_source.h"
#include "formats/bytes/chunk_source.h"

namespace npyfs {

// Runs `sh -c COMMAND` in `directory`, without input, and gives what it prints. The output is held
// by `cache`; where that has no room for it the command is run again when it is next read. Throws
// kCorrupt where the command fails, takes longer than ten minutes or prints more than 1 GiB.
// `script` is what names the command: the output changes when that does.
SourcePtr run_pipe(const std::string& command, const std::string& directory,
                   const SourcePtr& script, ChunkCache& cache);

}  // namespace npyfs
