// SPDX-License-Identifier: Apache-2.0
//
// Recordings and annotations as DAS exports them: NAME.wav or NAME.npz and NAME_annotations.csv.

#pragma once

#include "formats/format.h"

namespace npyfs {

extern const Format kDas;

}  // namespace npyfs
