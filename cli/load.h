// SPDX-License-Identifier: Apache-2.0
//
// What mount and info have in common: from a command line to the data set it names.

#pragma once

#include <functional>
#include <string>

#include "cli/command_line.h"
#include "formats/arrays/dataset.h"
#include "fs/block_cache.h"
#include "fs/verified_records.h"
#include "index/set_index.h"

namespace npyfs {

// One line to the user, on stderr.
void print_warning(const std::string& text);

// Where the kept index lies; empty: nowhere.
std::string index_folder(const CommandLine& command_line);

// Owns what the arrays of the data set read through; members go in reverse order.
struct LoadedDataset {
  // `warn` gets one line per finding.
  explicit LoadedDataset(const CommandLine& command_line,
                         const std::function<void(const std::string&)>& warn = print_warning);
  LoadedDataset(const LoadedDataset&) = delete;
  LoadedDataset& operator=(const LoadedDataset&) = delete;

  VerifiedRecords verified;
  // All files that were opened to find out what there is; only with --cache-dir.
  std::vector<OpenedFiles::File> opened;
  IndexResult index;
  // Whether the arrays are the same wherever the folder of the SOURCEs lies, and whether they are
  // records, all of them; the same.
  bool may_move = false;
  bool are_records = false;
  BlockCache cache;
  Dataset dataset;
};

// Calls `visit` for every source that feeds an array; for one that feeds several, once.
void for_each_source(const Dataset& dataset, const std::function<void(const SourcePtr&)>& visit);

// A quarter of memory, or of the cgroup's limit if that is less, at most 4 GiB.
std::uint64_t default_cache_nbytes();

}  // namespace npyfs
