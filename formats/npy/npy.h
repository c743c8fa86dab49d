// SPDX-License-Identifier: Apache-2.0
//
// What numpy and DAS write: a .npy file, an .npz archive of them, a directory of them (npy_dir).

#pragma once

#include "formats/format.h"

namespace npyfs {

extern const Format kNpy;

}  // namespace npyfs
