// SPDX-License-Identifier: Apache-2.0
//
// Errors that know their place.

#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "formats/bytes/byte_source.h"
#include "formats/bytes/error.h"

namespace npyfs {

// Makes the Error of "<what> is <found>, expected <rule>"; its maker knows the place.
using MakeFault = std::function<Error(const std::string& text)>;

// "<file> at byte <offset>: <text>", the place of an object. `source` must outlive it.
inline MakeFault fault_at(const ByteSource& source, std::uint64_t offset) {
  return [&source, offset](const std::string& text) {
    return corrupt_at(source.name(), offset, text + "; the file is damaged or of another kind");
  };
}

}  // namespace npyfs
