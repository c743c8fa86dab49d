// SPDX-License-Identifier: Apache-2.0
//
// Which arrays of a mount are kept on a disk, and under which key: what readers are given is
// written behind them, and what was written in this mount or an earlier one is read from there.

#pragma once

#include <sys/uio.h>

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "formats/bytes/identity.h"
#include "fs/file.h"
#include "fs/npy_file.h"
#include "kept/fill_queue.h"
#include "kept/kept_folder.h"
#include "threads/mutex.h"

namespace npyfs {

// A cache folder whose troubles go to the log. As KeptFolder::open().
std::shared_ptr<KeptFolder> open_cache_folder(const std::string& path,
                                              std::optional<std::uint64_t> most_nbytes);

struct KeepOptions {
  std::shared_ptr<KeptFolder> folder;  // not null
  // What the bytes of all arrays depend on: the program that decodes them; and what the user said
  // of them with every file that was opened to find out what there is, each in its place.
  std::string version;
  Digest dataset{};
};

// Any thread.
class KeptArrays {
 public:
  // Starts threads, unless nothing is to be written: not before a daemon has forked. `on_complete`
  // gets the number of a file whose array has become complete after it was opened here; any thread.
  KeptArrays(const KeepOptions& options, std::function<void(Ino ino)> on_complete);
  // Waits until what readers were given is written.
  ~KeptArrays();
  KeptArrays(const KeptArrays&) = delete;
  KeptArrays& operator=(const KeptArrays&) = delete;

  // The kept array of a file, in part or complete, made where there is none; `path` is the file's
  // in the mount. Null for a file that is not kept: a small one, one that costs no more to read
  // than what is kept would, or one whose bytes may come from files that nobody knows yet.
  std::shared_ptr<KeptArray> open(Ino ino, const std::string& path, const File& file);

  // A reader was given the bytes in `parts`, from `offset` of the file on. Never throws, never
  // waits.
  void note_read(const std::shared_ptr<KeptArray>& array, std::uint64_t offset,
                 std::span<const iovec> parts) noexcept;

  const KeptCounts& counts() const { return folder_->counts(); }
  FillQueue::Counts queue_counts() const { return queue_ ? queue_->counts() : FillQueue::Counts(); }

 private:
  std::optional<KeptKey> key_of(const std::string& path, const NpyFile& file) const;

  // What one reader knows of an array.
  struct Known {
    Ino ino = 0;
    std::weak_ptr<KeptArray> array;
    // Holds an array in part while it is one of those that were opened last: numpy opens a file
    // three times to map it once, and each new KeptArray checks its blocks anew. Null for a
    // complete array: one that is held cannot be evicted.
    std::shared_ptr<KeptArray> held;
  };
  static constexpr std::size_t kMostKnown = 64;

  void note_complete(const std::shared_ptr<KeptArray>& array);
  std::shared_ptr<KeptArray> find_known(Ino ino) REQUIRES(mutex_);
  void remember(Ino ino, const std::shared_ptr<KeptArray>& array) REQUIRES(mutex_);

  std::shared_ptr<KeptFolder> folder_;
  std::string version_;
  Digest dataset_;  // of what all arrays depend on
  const std::function<void(Ino)> on_complete_;
  Mutex mutex_;
  std::list<Known> known_ GUARDED_BY(mutex_);  // those that were opened last first
  std::optional<FillQueue> queue_;             // last: its threads call note_complete()
};

}  // namespace npyfs
