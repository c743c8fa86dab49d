// SPDX-License-Identifier: Apache-2.0
//
// A folder packed into an FFRecord file: its last sample says what the others are called. See
// FORMAT.md.

#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "formats/bytes/byte_source.h"
#include "formats/bytes/string_list.h"

namespace npyfs {

// Whether a sample that begins so is an index.
bool is_folder_index(const ByteSource& source, std::uint64_t offset, std::uint64_t nbytes);

// The path of each of `files` samples, from the index at `offset`. Nothing, and a line to `warn`,
// where it is none that names each of them once.
std::optional<StringList> read_folder_index(const ByteSource& source, std::uint64_t offset,
                                            std::uint64_t nbytes, std::uint64_t files,
                                            const std::function<void(const std::string&)>& warn);

}  // namespace npyfs
