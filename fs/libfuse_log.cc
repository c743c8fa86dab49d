// SPDX-License-Identifier: Apache-2.0

#include "fs/libfuse_log.h"

#include <fuse3/fuse_log.h>

#include <cstdarg>
#include <cstdio>
#include <exception>
#include <string_view>

#include "formats/bytes/error.h"
#include "fs/log.h"
#include "threads/mutex.h"

namespace npyfs {

namespace {

// libfuse has one handler a process.
struct Lines {
  Mutex mutex;
  std::string last GUARDED_BY(mutex);
  bool logged GUARDED_BY(mutex) = false;
};

Lines& lines() {
  static Lines instance;
  return instance;
}

void take_line(fuse_log_level level, const char* format, va_list arguments) {
  char bytes[512];
  std::vsnprintf(bytes, sizeof bytes, format, arguments);
  std::string_view text = bytes;
  while (text.ends_with('\n')) {
    text.remove_suffix(1);
  }
  try {
    const std::string line = printable(text);
    Lines& all = lines();
    {
      const MutexLock lock(all.mutex);
      const bool again = all.last == line;
      all.last = line;
      if (!all.logged || again) {
        return;
      }
    }
    if (level <= FUSE_LOG_ERR) {
      log_error("libfuse: " + line);
    } else if (level <= FUSE_LOG_WARNING) {
      log_warning("libfuse: " + line);
    } else {
      log_debug("libfuse: " + line);
    }
  } catch (const std::exception&) {
    // Not even a line can be written; the caller is C.
  }
}

void set_logged(bool logged) {
  Lines& all = lines();
  const MutexLock lock(all.mutex);
  all.logged = logged;
}

}  // namespace

void take_libfuse_lines() { fuse_set_log_func(take_line); }

std::string libfuse_said() {
  Lines& all = lines();
  const MutexLock lock(all.mutex);
  return all.last;
}

LibfuseLines::LibfuseLines() { set_logged(true); }
LibfuseLines::~LibfuseLines() { set_logged(false); }

}  // namespace npyfs
