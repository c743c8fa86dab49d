// SPDX-License-Identifier: Apache-2.0
//
// The one file of the child, as libhdf5 is to see it. For the child only.

#pragma once

#include "formats/hdf5/child_handle.h"

namespace npyfs {

// Opens kChildFile, which needs no system call but for reading: libhdf5's own drivers open files by
// name, this one has no use for names, and opens nothing while it is open: a link of the file to
// another one is not answered with the file itself. Throws ChildError.
H5File open_child_file();

}  // namespace npyfs
