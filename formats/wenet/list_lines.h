// SPDX-License-Identifier: Apache-2.0
//
// The lines of a data.list.

#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "formats/bytes/byte_source.h"
#include "formats/bytes/error.h"

namespace npyfs {

// One line without the blanks around it; blank ones are passed over.
struct ListLine {
  std::string_view text;
  std::uint32_t number = 0;  // from 1
};
void for_each_line(const ByteSource& list, const std::function<void(const ListLine&)>& take);

// "<list> line <number>: <text>", kind kCorrupt unless given.
Error list_error(const ByteSource& list, std::uint32_t line, std::string_view text,
                 ErrorKind kind = ErrorKind::kCorrupt);

// The path that a line names. Throws kUnsupported where it is a URL or command instead.
std::string local_path(const ByteSource& list, const ListLine& line, std::string_view path);

// "<list> line <number>: " in front of `error`, met in the file that the line names.
Error line_error(const ByteSource& list, std::uint32_t line, const Error& error);

// Whether the list, going by its first line, is one of WeNet's.
bool looks_like_list(const ByteSource& source);
// Whether its lines are JSON objects.
bool is_raw_list(const ByteSource& list);

}  // namespace npyfs
