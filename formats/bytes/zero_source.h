// SPDX-License-Identifier: Apache-2.0
//
// Zero bytes without end: what the holes of sparse files read as.

#pragma once

#include "formats/bytes/byte_source.h"

namespace npyfs {

// Any offset up to 2^63 is as good as another: holes that are read at their own offsets merge. An
// extent of it is planned as a fill.
const ByteSource& zero_source();

}  // namespace npyfs
