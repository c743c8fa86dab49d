// SPDX-License-Identifier: Apache-2.0
//
// A format: how its files are recognised and opened, and what else the floors above must know of
// it. What it promises of records is in record_table.h, of arrays in store.h. Nothing here knows of
// mounts or threads, and of caches no more than chunk_source.h says.

#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/opening.h"

namespace npyfs {

class RecordTable;  // formats/record_table.h
struct Store;       // formats/store.h

// An option that a format takes. The command line and --help have one for each name.
struct FormatOption {
  const char* name;   // without dashes: OpenContext::options has it under this name
  const char* value;  // as --help calls it; null for a flag
  const char* help;
  // With it, arrays may hold something else although no file has changed.
  bool makes_volatile = false;
};

// What a SOURCE says for itself alone.
struct SourceOptions {
  bool permissive = false;
  FormatOptions options;
};

// What a file says of each key, as --map takes it.
using KeyMap = std::map<std::string, std::string, std::less<>>;

// What attributes say about rows. Must be updated when rows are cut or concatenated.
struct RowAttributes {
  // Stores may stand one after another only if `attribute` of their roots is the same in both.
  struct Common {
    const char* array;
    const char* attribute;
  };
  std::span<const Common> common;
  // Three lists with an entry for each recording that the rows of a split's x come from: its name,
  // its first row, and the row behind its last. The name of the split follows each of these.
  const char* recording_names;
  const char* recording_starts;
  const char* recording_ends;
};

// A row of the table in registry.cc. A format gives what it has by name and leaves out the rest.
struct Format {
  const char* name = nullptr;
  // Extensions of file names, without the dot. They are asked if no format knows the file's magic.
  std::vector<std::string> extensions{};
  // Opens files of every packing (formats/bytes/packings); other formats open gzip at most.
  bool takes_packings = false;
  // Whether the content is this format's. Looks at few bytes; never throws for content.
  bool (*recognises)(const Location& location) = nullptr;
  // Checks everything that can be checked cheaply. Null for formats that hold arrays.
  std::shared_ptr<const RecordTable> (*open)(const Location& location,
                                             OpenContext& context) = nullptr;
  // The same as `open` for formats that hold arrays (formats/store.h); null for all others.
  std::shared_ptr<const Store> (*open_store)(const Location& location,
                                             OpenContext& context) = nullptr;
  // Where sets that are directories lie within a project's folder; null: nowhere in particular.
  const char* sets_folder = nullptr;
  std::span<const FormatOption> options{};
  // Whether `words`, before the ':' of a SOURCE, are another way to write the format's name, with
  // options in it; then they are added to `said`. Null: its name only.
  bool (*takes_specifier)(std::string_view words, SourceOptions& said) = nullptr;
  // What --decode x=KIND may call the format's records, besides payloads. `open` sees to it.
  std::vector<std::string> decode_kinds{};
  // Reads a file that --map names. Nothing where every key stands for itself. Throws kCorrupt,
  // naming the line. Null for formats without such files.
  std::optional<KeyMap> (*read_key_map)(const ByteSource& file) = nullptr;
  // What the attributes mean that the format's programs give to stores of any format.
  const RowAttributes* row_attributes = nullptr;
};

}  // namespace npyfs
