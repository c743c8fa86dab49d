// SPDX-License-Identifier: Apache-2.0
//
// UTF-8, one code point at a time, as Python reads and writes it.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace npyfs {

inline bool is_surrogate(char32_t point) { return point >= 0xd800 && point <= 0xdfff; }

// The code point that begins at `at`, which moves behind it. Where the bytes are not UTF-8:
// nothing, and `at` moves behind the longest prefix of a valid sequence (at least one byte), so
// that one U+FFFD per call is what Python's errors='replace' gives. A surrogate coded as three
// bytes is returned as it is, as Python's 'surrogatepass' has it; callers that mind ask
// is_surrogate.
std::optional<char32_t> next_code_point(std::string_view text, std::size_t& at);

void append_utf8(std::string& out, char32_t point);

// Whether next_code_point finds no fault and no surrogate.
bool is_utf8(std::string_view text);

// How many code points `text` has, where each byte that belongs to no valid sequence counts as one.
std::uint64_t utf8_length(std::string_view text);

// Writes them as numpy's <U has them, four bytes little-endian each, zeroes behind; a byte of no
// valid sequence as 0xDC00 + the byte, as Python's surrogateescape has it. What does not fit is
// dropped.
void write_utf32(std::string_view text, std::span<std::byte> out);

}  // namespace npyfs
