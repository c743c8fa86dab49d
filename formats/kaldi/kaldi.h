// SPDX-License-Identifier: Apache-2.0
//
// Kaldi's tables: archives, scripts, data directories. See FORMAT.md.

#pragma once

#include "formats/format.h"

namespace npyfs {

// Initialised when the program starts, in no order that other files may rely on.
extern const Format kKaldi;  // a data directory
extern const Format kArk;
extern const Format kScp;

}  // namespace npyfs
