// SPDX-License-Identifier: Apache-2.0
//
// Completes kept arrays of a mount while it serves: all of them (`npyfs mount --fill`), or those
// that readers have read most of, since blocks are dropped where readers are faster than the disk
// and where they read at random.

#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "fs/block_cache.h"
#include "fs/fetch.h"
#include "fs/fuse_ops.h"
#include "fs/verified_records.h"
#include "kept/fill_arrays.h"
#include "threads/mutex.h"

namespace npyfs {

// Reads with a cache of its own: readers' chunks are not driven out of theirs, and no reader waits
// for a chunk that a thread decodes which has to let everybody else go first. While readers ask for
// anything, each thread rests four times as long as it works.
class BackgroundFill {
 public:
  enum class What { kAll, kWanted };

  // Starts threads: not before a daemon has forked. Both must outlive it; `fs.kept` is set.
  BackgroundFill(MountedFs& fs, const VerifiedRecords& verified, What what);
  // Ends after the block that is being read, or written.
  ~BackgroundFill();
  BackgroundFill(const BackgroundFill&) = delete;
  BackgroundFill& operator=(const BackgroundFill&) = delete;

  // Has an array of the mount completed. Does not wait; any thread.
  void complete_later(Ino ino) noexcept;

 private:
  // An array to fill, and the number of its file.
  struct Tasks {
    std::vector<FillTask> tasks;
    std::vector<Ino> inos;
  };

  void run();
  void rest_for_readers() const;
  void fill(const Tasks& tasks);
  void add(Tasks& tasks, Ino ino, const std::string& path, std::shared_ptr<const File> file) const;
  Tasks take_wanted();
  void read(Ino ino, const File& file, std::uint64_t offset, std::span<std::byte> out) const;
  void note_end(Ino ino, const FillResult& result) const;

  MountedFs& fs_;
  BlockCache cache_;
  const Fetcher fetcher_;
  Tasks all_;
  std::atomic<bool> is_stopping_{false};
  Mutex mutex_;
  Condition changed_;
  std::vector<Ino> wanted_ GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace npyfs
