// SPDX-License-Identifier: Apache-2.0
//
// The text index beside a RecordIO file: lines of "key TAB offset". See FORMAT.md.

#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/bytes/byte_source.h"

namespace npyfs {

// One line.
struct IdxEntry {
  std::uint64_t offset = 0;
  std::int64_t key = 0;          // an integer, or where the text begins in IdxFile::text
  std::uint32_t key_nbytes = 0;  // of a text
  std::uint32_t line = 0;        // from 1
};

struct IdxFile {
  bool integer_keys = true;
  std::string text;               // of all text keys
  std::vector<IdxEntry> entries;  // by offset, then by line; every key once

  std::string_view text_key(const IdxEntry& entry) const {
    return std::string_view(text).substr(static_cast<std::size_t>(entry.key), entry.key_nbytes);
  }
};

// Parses all lines. Keys are integers if all of them are. Of equal keys the last one counts, with a
// warning. A line that cannot be understood throws kCorrupt; where `permissive`, it is left out
// with a warning.
IdxFile read_idx(const ByteSource& source, bool permissive,
                 const std::function<void(const std::string&)>& warn);

// The place of an index next to `path`: the extension of the file name replaced by ".idx", as
// Python's splitext sees extensions.
std::string idx_path(const std::string& path);

}  // namespace npyfs
