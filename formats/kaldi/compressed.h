// SPDX-License-Identifier: Apache-2.0
//
// Kaldi's compressed matrices, decoded bit for bit as Kaldi does.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "formats/kaldi/object.h"

namespace npyfs {

// `stored` is the object from its "\0B" on, as parse_binary_object measured it; `out` takes rows x
// cols values in C order.
void decode_compressed(const Object& object, std::span<const std::byte> stored,
                       std::span<float> out);

}  // namespace npyfs
