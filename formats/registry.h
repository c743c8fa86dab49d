// SPDX-License-Identifier: Apache-2.0
//
// The formats there are.

#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "formats/format.h"

namespace npyfs {

// In sniffing order: a format with a sure magic stands before one that must be guessed.
std::span<const Format> formats();

// Null where there is none of that name.
const Format* find_format(std::string_view name);

// Whether all that belongs to a SOURCE of the format is found by names below its folder: no path
// stands in any file, so that it makes no difference where that folder lies.
bool names_no_paths(const Format& format);

// Whether the name of `path` ends in one of the format's extensions, in any case; a trailing .gz
// (or the extension of another packing that the format takes) and the number of a shard
// (-00001-of-00002) do not count.
bool has_extension(const Format& format, std::string_view path);

// By magic, then as has_extension; null where none fits.
const Format* detect_format(const Location& location);

// As Format::read_key_map of the format that has it.
std::optional<KeyMap> read_key_map(const ByteSource& file);

// Those of the format that has them.
const RowAttributes& row_attributes();

}  // namespace npyfs
