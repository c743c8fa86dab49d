// SPDX-License-Identifier: Apache-2.0
//
// Lines for whoever runs the mount: to stderr in the foreground, to syslog otherwise.

#pragma once

#include <string>

namespace npyfs {

enum class LogTarget { kStderr, kSyslog };

// Before the first line; without it lines go to stderr. One thread.
void open_log(LogTarget target, bool debug);

// Any thread. One line each; `text` has its place in it.
void log_error(const std::string& text);
void log_warning(const std::string& text);
void log_debug(const std::string& text);
// Whether log_debug writes anything, so that the text need not be made.
bool debug_logged();

}  // namespace npyfs
