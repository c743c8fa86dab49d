// SPDX-License-Identifier: Apache-2.0
//
// Attributes of an HDF5 object as plain data. For the child only.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "formats/bytes/value.h"
#include "formats/hdf5/child_handle.h"
#include "formats/hdf5/wire.h"

namespace npyfs {

// What the attributes of one question may still hold.
struct AttributeBudget {
  std::uint64_t values = kMostAttributeValues;
  std::uint64_t nbytes = kMostAttributeNbytes;
};

struct LeftOutAttribute {
  std::string name;
  std::string why;  // empty: it is no data, but references
};

// All attributes, by name. What is no data, cannot be read or takes more than the
// budget has is told in `left_out`; the others are unharmed.
Dict read_attributes(hid_t object, AttributeBudget& budget,
                     std::vector<LeftOutAttribute>& left_out);

}  // namespace npyfs
