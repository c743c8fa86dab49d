// SPDX-License-Identifier: Apache-2.0
//
// WeNet's data.list: of tar shards, or of waves. See FORMAT.md.

#pragma once

#include "formats/format.h"

namespace npyfs {

// Initialised when the program starts, in no order that other files may rely on.
extern const Format kWenet;

}  // namespace npyfs
