// SPDX-License-Identifier: Apache-2.0
//
// Tar shards as WebDataset writes and reads them. See FORMAT.md.

#pragma once

#include "formats/format.h"

namespace npyfs {

// Initialised when the program starts, in no order that other files may rely on.
extern const Format kTar;

}  // namespace npyfs
