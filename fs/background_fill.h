// SPDX-License-Identifier: Apache-2.0
//
// `npyfs mount --fill`: completes the kept arrays of a mount while it serves.

#pragma once

#include <atomic>
#include <thread>
#include <vector>

#include "fs/block_cache.h"
#include "fs/fetch.h"
#include "fs/fuse_ops.h"
#include "fs/verified_records.h"
#include "kept/fill_arrays.h"

namespace npyfs {

// Reads with a cache of its own: readers' chunks are not driven out of theirs, and no reader waits
// for a chunk that a thread decodes which has to let everybody else go first.
class BackgroundFill {
 public:
  // Starts threads: not before a daemon has forked. Both must outlive it; `fs.kept` is set.
  BackgroundFill(MountedFs& fs, const VerifiedRecords& verified);
  // Ends after the block that is being read, or written.
  ~BackgroundFill();
  BackgroundFill(const BackgroundFill&) = delete;
  BackgroundFill& operator=(const BackgroundFill&) = delete;

 private:
  void run();
  void read(Ino ino, const File& file, std::uint64_t offset, std::span<std::byte> out) const;
  void note_end(const FillResult& result);

  MountedFs& fs_;
  BlockCache cache_;
  const Fetcher fetcher_;
  std::vector<FillTask> tasks_;
  std::vector<Ino> inos_;  // of the tasks
  std::atomic<bool> is_stopping_{false};
  std::thread thread_;
};

}  // namespace npyfs
