// SPDX-License-Identifier: Apache-2.0
//
// A mount from beginning to end.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "formats/arrays/dataset.h"
#include "fs/block_cache.h"
#include "fs/kept_arrays.h"
#include "fs/stats.h"
#include "fs/verified_records.h"

namespace npyfs {

struct MountOptions {
  std::optional<IndexFigures> index;  // of its opening
  std::string version;                // of the program
  double opening_s = 0;               // how long it took to find out what there is
  std::string mountpoint;
  std::string source;  // shown as the device in /proc/mounts
  bool foreground = false;
  bool debug = false;  // implies foreground; one line per operation
  // Passed to the kernel or libfuse as they are: "allow_other", "noatime", ...
  std::vector<std::string> fuse_options;
  unsigned threads = 0;  // 0: as many as cores, at least 4
  std::uint64_t header_align = 64;
  // Lets the kernel read by itself what it can.
  bool passthrough = true;
  // Where arrays are kept that were read; nothing: nowhere.
  std::optional<KeepOptions> keep;
  // Completes them in the background.
  bool fill = false;
};

// Mounts, daemonizes (unless in the foreground) and serves until unmounted or told to stop by
// SIGINT, SIGTERM or SIGHUP. Returns the exit code in the process that served; the process that
// called it exits with 0 once the mount is ready. Throws Error with nothing left mounted.
int serve_dataset(const Dataset& dataset, BlockCache& cache, VerifiedRecords& verified,
                  const MountOptions& options);

}  // namespace npyfs
