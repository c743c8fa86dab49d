// SPDX-License-Identifier: Apache-2.0
//
// A LOCATION becomes paths: lists with `;`, brace lists, globs.

#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace npyfs {

bool path_exists(const std::string& path);

struct Expansion {
  std::vector<std::string> paths;  // at least one; all exist
  // As many. Of a glob's match the folder that its pattern names before anything is matched ("."
  // for none); empty for what was written as it is.
  std::vector<std::string> folders;
  bool is_list = false;  // false: LOCATION is a path itself
};

// What exists as a path is taken as it is, before anything is expanded; a glob's matches come in
// bytewise order, all else in the order written. Index files beside matched data files are passed
// over. Throws kNotFound naming the missing file or the glob without a match, kUsage for unbalanced
// braces.
Expansion expand_location(const std::string& location);

// Tells index files (a.idx, a.rec.idx, a.lst, ...) that belong to data files from other files.
class IndexFiles {
 public:
  void add_data_file(std::string_view path);
  // Whether `path` is named as an index of a data file that was added.
  bool belongs(std::string_view path) const;

 private:
  std::set<std::string> stems_;  // names of data files, and those without extensions
};

// Whether `path` has the extension of an index file.
bool is_named_as_index(std::string_view path);

}  // namespace npyfs
