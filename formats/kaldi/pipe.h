// SPDX-License-Identifier: Apache-2.0
//
// Commands in scripts, which are run only where the user allows it.

#pragma once

#include <chrono>
#include <string>

#include "formats/bytes/byte_source.h"
#include "formats/bytes/chunk_source.h"

namespace npyfs {

constexpr std::chrono::minutes kMostPipeTime{10};

// Runs `sh -c COMMAND` in `directory`, without input, and gives what it prints. The output is held
// by `cache`; where that has no room for it the command is run again when it is next read. Throws
// kCorrupt where the command fails, has not ended after `most_time` or prints more than 1 GiB;
// kIo where it cannot be started. `script` is what names the command: the output changes when that
// does. SIGCHLD must not be ignored. What comes back may be read from any thread.
SourcePtr run_pipe(const std::string& command, const std::string& directory,
                   const SourcePtr& script, ChunkCache& cache,
                   std::chrono::milliseconds most_time = kMostPipeTime);

}  // namespace npyfs
