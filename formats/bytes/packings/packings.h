// SPDX-License-Identifier: Apache-2.0
//
// Every packing there is but for gzip (inflate.h), each in a file of its own.

#pragma once

#include "formats/bytes/packings/packing.h"

namespace npyfs {

extern const Packing kBzip2Packing;
extern const Packing kXzPacking;
extern const Packing kZstdPacking;

}  // namespace npyfs
