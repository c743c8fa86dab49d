// SPDX-License-Identifier: Apache-2.0
//
// attrs.npy: a dict pickled in a 0-d object array, read without executing anything.

#pragma once

#include <functional>
#include <optional>
#include <string>

#include "formats/bytes/byte_source.h"
#include "formats/bytes/value.h"

namespace npyfs {

// The attributes; nothing where the file is an array like any other. What is not plain data is left
// out, with a warning. Throws kCorrupt where the pickle is damaged, kUnsupported where it holds
// nothing that is plain data, or no dict.
std::optional<Dict> read_attrs_file(const ByteSource& source,
                                    const std::function<void(const std::string&)>& warn);

// attrs.json, as npyfs shows it beside attrs.npy. Throws kCorrupt where it is not an object.
Dict read_attrs_json(const ByteSource& source);

}  // namespace npyfs
