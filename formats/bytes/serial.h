// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>

namespace npyfs {

// Identifies its owner to whoever remembers something of it. No other owner has or will have the
// same value while the process lives, whereas the address of an object that is gone is given to the
// next one. A copy has a value of its own. Any thread.
class Serial {
 public:
  Serial();
  Serial(const Serial& /*other*/) : Serial() {}
  Serial& operator=(const Serial&) = delete;

  std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_;
};

}  // namespace npyfs
