// SPDX-License-Identifier: Apache-2.0
//
// Attributes of an HDF5 object as plain data. For the child only.

#pragma once

#include "formats/bytes/value.h"
#include "formats/hdf5/child_handle.h"

namespace npyfs {

// All attributes, by name. References and what else is no data are left out; so is what cannot be
// read, with its name in `unreadable`.
Dict read_attributes(hid_t object, std::vector<std::string>& unreadable);

}  // namespace npyfs
