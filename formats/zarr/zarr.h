// SPDX-License-Identifier: Apache-2.0
//
// zarr stores of version 2 and 3, in a directory or a zip archive; see FORMAT.md.

#pragma once

#include "formats/format.h"

namespace npyfs {

extern const Format kZarr;

}  // namespace npyfs
