// SPDX-License-Identifier: Apache-2.0
//
// Text as numpy's <U stores it: one UTF-32 unit a code point.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace npyfs {

// Takes the first code point off `text` (not empty). A byte that begins no valid sequence is one of
// its own: 0xDC00 + the byte, as Python's surrogateescape has it.
char32_t next_code_point(std::string_view& text);

// How many code points that makes of `text`.
std::uint64_t utf8_length(std::string_view text);

bool is_utf8(std::string_view text);

// Writes them little-endian into `out`, four bytes each, zeroes behind. What does not fit is
// dropped.
void write_utf32(std::string_view text, std::span<std::byte> out);

}  // namespace npyfs
