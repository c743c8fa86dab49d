// SPDX-License-Identifier: Apache-2.0
//
// Names from data made safe as names of files.

#pragma once

#include <string>
#include <string_view>

namespace npyfs {

// `/` as %2F, NUL as %00, a byte that is not UTF-8 as %80 to %FF, a whole name of dots (`.`, `..`)
// as %2E each, an empty name as %. Nothing else is touched: the name stays what the user knows.
std::string escape_name(std::string_view name);

// `name` where it has at most 255 bytes with `suffix_nbytes` behind it, else its first 200 bytes,
// `~` and 16 hex digits of its FNV-1a hash.
std::string shorten_name(const std::string& name, std::size_t suffix_nbytes);

}  // namespace npyfs
