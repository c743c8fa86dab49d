// SPDX-License-Identifier: Apache-2.0
//
// Members of an archive that a flipped bit in its directory has given another name: what they were
// would seem never to have been written.

#pragma once

#include <functional>
#include <string>

#include "formats/bytes/fault_tally.h"

namespace npyfs {

// Counts those that are looked at one by one. One thread.
class RenamedMembers {
 public:
  // `require_own_name` throws kCorrupt for one that is; what else it throws is passed on.
  void look_at(const std::function<void()>& require_own_name);
  // One line for each kind of fault, if there were any. `where` they are.
  void tell(const std::string& where, const std::function<void(const std::string&)>& warn) const;

 private:
  FaultTally faults_{"members"};
};

}  // namespace npyfs
