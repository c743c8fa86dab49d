// SPDX-License-Identifier: Apache-2.0
//
// What could not be read in this mount: each finding is logged once, and listed in .npyfs/errors
// until unmount.

#pragma once

#include <set>
#include <string>
#include <vector>

#include "formats/bytes/error.h"
#include "threads/mutex.h"

namespace npyfs {

// Any thread.
class DamageLog {
 public:
  // Logs `path: text` of the error unless it has been noted before. That a source has changed is
  // one finding, whatever is seen of it: gone, shorter, another.
  void note(const std::string& path, const Error& error);
  // One line for each finding, in the order in which they were made.
  std::string lines() const;

 private:
  // A disk that dies under a big data set must not fill the memory with its lines.
  static constexpr std::size_t kMost = 10'000;

  mutable Mutex mutex_;
  std::set<std::string> seen_ GUARDED_BY(mutex_);
  std::vector<std::string> found_ GUARDED_BY(mutex_);
};

}  // namespace npyfs
