// SPDX-License-Identifier: Apache-2.0

#include "fs/damage_log.h"

#include "fs/log.h"

namespace npyfs {

void DamageLog::note(const std::string& path, const Error& error) {
  const std::string text = error.what();
  const std::string line = path + ": " + text;
  // "<file>: <how it has changed>"
  const std::string finding =
      error.kind() == ErrorKind::kChanged ? text.substr(0, text.rfind(": ")) : text;
  {
    const MutexLock lock(mutex_);
    if (found_.size() >= kMost || !seen_.insert(finding).second) {
      return;
    }
    found_.push_back(line);
    if (found_.size() == kMost) {
      found_.emplace_back("and more, which are not listed");
    }
  }
  log_error(line);
}

std::string DamageLog::lines() const {
  const MutexLock lock(mutex_);
  std::string all;
  for (const std::string& line : found_) {
    all += line + "\n";
  }
  return all;
}

}  // namespace npyfs
