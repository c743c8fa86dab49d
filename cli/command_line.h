// SPDX-License-Identifier: Apache-2.0
//
// What the user typed, understood.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "formats/arrays/dataset.h"
#include "formats/opening.h"

namespace npyfs {

enum class Verb { kMount, kUmount, kInfo, kStats, kIndex, kFill, kCache, kHelp, kVersion };

// What `npyfs cache` does.
enum class CacheAction { kList, kDrop, kCheck };

struct CommandLine {
  Verb verb = Verb::kMount;
  std::vector<std::string> sources;
  std::vector<std::string> mountpoints;  // one for mount and stats, one or more for umount

  DatasetOptions dataset;
  // What dataset.view is made of: words, and --rank and --world-size.
  ViewWords view_words;
  std::optional<Part> part;
  std::string base_dir;
  FormatOptions format_options;
  bool allow_outside = false;
  // The long options that the arrays depend on, as they were given: "dtype=x=float32".
  std::vector<std::string> shaping;
  std::string cache_dir;                          // empty: nothing is kept on a disk
  std::optional<std::uint64_t> cache_dir_nbytes;  // nothing: by the room that is free there
  std::optional<std::uint64_t> cache_nbytes;      // nothing: by the machine's memory
  std::optional<std::string> index_dir;           // empty: none; nothing: the user's cache folder
  std::string index_file;                         // made ahead; empty: none

  std::uint64_t header_align = 64;

  // mount
  bool foreground = false;
  bool debug = false;
  bool fill = false;                      // completes kept arrays in the background
  unsigned threads = 0;                   // 0: as many as cores; of fill, too
  std::string device;                     // -o fsname=, else empty
  bool passthrough = true;                // not with -o no_passthrough
  std::vector<std::string> fuse_options;  // for libfuse and the kernel, as they are

  // info, stats, fill, cache
  bool json = false;
  bool quiet = false;  // fill: no progress
  bool watch = false;  // stats: again every second

  // index
  std::string index_target;  // empty: the index folder

  // cache
  CacheAction cache_action = CacheAction::kList;
  std::vector<std::string> names;  // of kept arrays; empty: all
};

}  // namespace npyfs
