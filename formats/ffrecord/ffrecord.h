// SPDX-License-Identifier: Apache-2.0
//
// FFRecord: a header of checksums and offsets, then the samples. See FORMAT.md.

#pragma once

#include "formats/format.h"

namespace npyfs {

// Initialised when the program starts, in no order that other files may rely on: refer to it, do
// not copy it into a constant.
extern const Format kFfrecord;

}  // namespace npyfs
