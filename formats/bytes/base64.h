// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

namespace npyfs {

// Decodes RFC 4648 text, padded, without line breaks, into the beginning of `out`, which has at
// least text.size() / 4 * 3 bytes: how many they are. Nothing where it is not such text.
std::optional<std::size_t> decode_base64(std::string_view text, std::span<std::byte> out);

}  // namespace npyfs
