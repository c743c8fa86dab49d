// SPDX-License-Identifier: Apache-2.0
//
// Which files a SOURCE is made of, of which format they are, and which split each belongs to.

#pragma once

#include <string>
#include <vector>

#include "cli/source_spec.h"
#include "formats/format.h"

namespace npyfs {

struct FoundFile {
  Location location;
  const Format* format = nullptr;
  // Empty for a store that keeps its own groups as splits; then, should it be one array only, that
  // goes to `array_split`.
  std::string split;
  std::string array_split{};
};

// In the order in which they are to be concatenated: as written, directories by name (bytewise).
// Warns once per directory of entries that no format recognises. Throws as open_sources does.
std::vector<FoundFile> find_files(const SourceSpec& spec, const OpenContext& context);

}  // namespace npyfs
