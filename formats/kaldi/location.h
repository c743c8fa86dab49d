// SPDX-License-Identifier: Apache-2.0
//
// What a script says of an object's place: a file, an offset, a range, a command.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "formats/kaldi/object.h"

namespace npyfs {

struct ScriptLocation {
  enum class Kind { kFile, kPipe, kRefused };
  Kind kind = Kind::kFile;
  std::string_view path;                // of kPipe: the command
  std::optional<std::uint64_t> offset;  // nothing: the file is the object
  std::optional<std::string_view> range;
  const char* refusal = nullptr;  // of kRefused: "is <found>, expected <rule>"
};

// Takes a location apart as Kaldi does. What it holds are parts of `text`.
ScriptLocation parse_location(std::string_view text);

// "a:b" or "a:b,c:d" or ":" for a matrix, one part for a vector; both ends count. The last row may
// be up to three beyond the object's. On failure nothing, and `why` is "is <found>, expected
// <rule>".
std::optional<ObjectRange> parse_range(std::string_view text, const Object& object,
                                       std::string& why);

}  // namespace npyfs
