// SPDX-License-Identifier: Apache-2.0
//
// One decoder for each kind of image; decode_image() picks. They are separate because two of the
// libraries report errors by longjmp.

#pragma once

#include <cstddef>
#include <span>

#include "formats/payloads/image.h"

namespace npyfs {

// All as decode_image().
void decode_jpeg(const ImageInfo& info, std::span<const std::byte> stored,
                 std::span<std::byte> out);
void decode_png(const ImageInfo& info, std::span<const std::byte> stored, std::span<std::byte> out);
void decode_webp(const ImageInfo& info, std::span<const std::byte> stored,
                 std::span<std::byte> out);

}  // namespace npyfs
