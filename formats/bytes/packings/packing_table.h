// SPDX-License-Identifier: Apache-2.0
//
// The packings there are.

#pragma once

#include "formats/bytes/packings/packing.h"

namespace npyfs {

std::span<const Packing> packings();

// Null for what is not packed. The first packing that recognises `head`.
const Packing* find_packing(std::span<const std::byte> head);
// Looks behind skippable frames.
const Packing* find_packing(const ByteSource& source);

}  // namespace npyfs
