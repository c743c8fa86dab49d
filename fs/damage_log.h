// SPDX-License-Identifier: Apache-2.0
//
// What could not be read in this mount: each finding is logged once, and listed in .npyfs/errors
// until unmount.

#pragma once

#include <set>
#include <string>
#include <vector>

#include "fs/mutex.h"

namespace npyfs {

// Any thread.
class DamageLog {
 public:
  // Logs `path: text` unless `text` has been noted before.
  void note(const std::string& path, const std::string& text);
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
