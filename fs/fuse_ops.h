// SPDX-License-Identifier: Apache-2.0
//
// The kernel's questions: unpack, ask the tree or the fetcher, reply. The only place where an Error
// becomes an errno.

#pragma once

#define FUSE_USE_VERSION 312
#include <fuse3/fuse_lowlevel.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "fs/block_cache.h"
#include "fs/damage_log.h"
#include "fs/fetch.h"
#include "fs/forest.h"
#include "fs/kept_arrays.h"
#include "fs/kept_view.h"
#include "fs/native_files.h"
#include "fs/read_ahead.h"
#include "fs/request_stats.h"
#include "threads/mutex.h"

namespace npyfs {

// What is known of an open file as long as it is open.
struct OpenFile {
  std::shared_ptr<const std::string> text;  // of a status file: what it said when it was opened
  std::shared_ptr<KeptArray> kept;          // of an array that is kept
  // Of a view's array, if the plain array is kept.
  std::shared_ptr<const KeptView> kept_view{};
};

// Open files that need more than their number. Any thread.
class OpenFiles {
 public:
  // Never 0, which is the handle of files that need none.
  std::uint64_t add(OpenFile file);
  // Empty for 0.
  OpenFile find(std::uint64_t handle) const;
  void remove(std::uint64_t handle);

 private:
  mutable Mutex mutex_;
  std::uint64_t last_ GUARDED_BY(mutex_) = 0;
  std::map<std::uint64_t, OpenFile> files_ GUARDED_BY(mutex_);
};

// What the callbacks work on; the session's user data.
struct MountedFs {
  Forest& tree;
  const Fetcher& fetcher;
  BlockCache& cache;
  DamageLog& damage;
  RequestStats& stats;
  OpenFiles& open_files;
  uid_t owner_uid = 0;
  gid_t owner_gid = 0;
  // Called when a read has found a source changed; any thread, must not wait.
  std::function<void()> on_source_changed;
  // Null where nothing is kept.
  KeptArrays* kept = nullptr;
  // Called when most of an array in part has been read; any thread, must not wait.
  std::function<void(Ino ino)> on_much_read = [](Ino) {};
  // Told of what is read; null as long as nothing is.
  ReadAhead* read_ahead = nullptr;
  // Set before the first file is opened.
  NativeFiles* native = nullptr;
  bool wants_passthrough = false;  // asked for at INIT
};

// Callbacks for a session whose user data is a MountedFs*.
const fuse_lowlevel_ops& fuse_ops();

}  // namespace npyfs
