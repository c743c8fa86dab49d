// SPDX-License-Identifier: Apache-2.0
//
// HDF5 files; see FORMAT.md. libhdf5 runs in a child process (child.h), which reads structure; the
// data is read here.

#pragma once

#include "formats/format.h"

namespace npyfs {

extern const Format kHdf5;

}  // namespace npyfs
