// SPDX-License-Identifier: Apache-2.0
//
// What libfuse says, which would go to stderr: nowhere, once the daemon has closed it.

#pragma once

#include <string>

namespace npyfs {

// From now on libfuse's lines come here; any of its threads may say one.
void take_libfuse_lines();

// The last line that libfuse has said: why the call that has just failed did. Any thread.
std::string libfuse_said();

// A scope in which libfuse's lines go to the log, once open_log() has been called. A line that says
// what the one before it said is not logged again.
class LibfuseLines {
 public:
  LibfuseLines();
  ~LibfuseLines();
  LibfuseLines(const LibfuseLines&) = delete;
  LibfuseLines& operator=(const LibfuseLines&) = delete;
};

}  // namespace npyfs
