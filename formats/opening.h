// SPDX-License-Identifier: Apache-2.0
//
// What a format is given to open: a location, and what the user said.

#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "formats/bytes/byte_source.h"
#include "formats/bytes/chunk_source.h"
#include "formats/bytes/confinement.h"
#include "formats/bytes/index_page.h"
#include "formats/bytes/storage.h"
#include "formats/bytes/verifier.h"

namespace npyfs {

struct UnpackPool;  // formats/bytes/unpack.h

// What the user gave to options that formats read, by the names of these without dashes. A flag has
// no values, any other one or, of a file that lists them, several.
using FormatOptions = std::map<std::string, std::vector<std::string>, std::less<>>;

// What the user said, as far as opening a source depends on it, and what a format may use.
struct OpenContext {
  bool permissive = false;
  // Verifies what is read while opening. Lives as long as what is opened.
  const Verifier* verifier = &strict_verifier();
  std::map<std::string, std::string> decode;  // --decode NAME=KIND
  // One line to the user; `text` has its place in it.
  std::function<void(const std::string& text)> warn;
  ChunkCache* cache = nullptr;
  // What the compressed shards of the data set share; null: nothing.
  std::shared_ptr<UnpackPool> unpack_pool;
  // Where relative paths that a data file names are looked for last; empty: --base-dir was not
  // given.
  std::string base_dir;
  // Files that a data file names must lie within the data set's folder.
  bool confine = false;
  FormatOptions options;
  // What earlier scans have found; null: nothing is kept.
  std::shared_ptr<IndexPages> index;

  // Whether the user gave the option.
  bool has(std::string_view option) const { return options.find(option) != options.end(); }
  // The kind given for `name`, or an empty string.
  std::string decode_kind(const std::string& name) const;
  // Where what lies in `folder`, or what a data file in it names, may lead: below it or --base-dir
  // where `confine` says so.
  Confinement confined_to(const std::string& folder) const;
  // The folder at `path`, confined to itself where `confine` says so.
  StoragePtr storage(const std::string& path) const;
  // What belongs to a data file and lies at `path` beside it; null where there is none. Throws as
  // Storage::find.
  SourcePtr open_beside(const std::string& path) const;
};

// What a LOCATION turned out to be.
struct Location {
  std::string path;  // as the user wrote it, after expansion
  bool is_directory = false;
  SourcePtr source;  // null for a directory
  // The user names the format: it may recognise what it would not claim by itself.
  bool named = false;
  // The split that it is opened for; empty: none was named.
  std::string split{};
};

}  // namespace npyfs
