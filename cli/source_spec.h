// SPDX-License-Identifier: Apache-2.0
//
// The grammar of one SOURCE: [SPLIT[/ARRAY]=][FORMAT:]LOCATION.

#pragma once

#include <string>
#include <string_view>

#include "formats/format.h"

namespace npyfs {

struct SourceSpec {
  std::string text;                // as the user wrote it
  std::string split;               // empty: to be found from the names
  std::string array;               // of SPLIT/ARRAY=, else empty
  const Format* format = nullptr;  // null: to be detected
  std::string location;
  SourceOptions said;  // with FORMAT
};

// A SOURCE that exists as a path is that path, whatever `=` or `:` it holds; LOCATION may be a URL,
// which is refused when it is opened. Throws kUsage, listing
// the formats, where what stands before the first `=` or `:` is neither a SPLIT nor a FORMAT.
SourceSpec parse_source(const std::string& text);

// Whether a split may be called so: letters, digits, `_`, `.` and `-`, no dot in front.
bool is_legal_split(std::string_view name);

// "train", "val" or "test" where the leading word of the path's last part is one of theirs (before
// the first `.`, `-` or `_`, any case, trailing digits ignored); else empty.
std::string split_of_name(std::string_view path);

// "ffrecord, recordio, ...", for messages.
std::string format_names();

}  // namespace npyfs
