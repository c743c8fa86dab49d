// SPDX-License-Identifier: Apache-2.0
//
// Every packing there is but for gzip (inflate.h), each in a file of its own.

#pragma once

#include "formats/bytes/packings/packing.h"

namespace npyfs {

extern const Packing kBzip2Packing;
extern const Packing kLz4Packing;
extern const Packing kXzPacking;
extern const Packing kZstdPacking;

// Whether a frame without data begins so, which zstd and lz4 have alike: a magic, the size of what
// follows both, and as many bytes.
bool is_skippable_frame(std::span<const std::byte> head);

}  // namespace npyfs
