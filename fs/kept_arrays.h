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
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "formats/bytes/identity.h"
#include "fs/file.h"
#include "fs/npy_file.h"
#include "kept/fill_queue.h"
#include "kept/kept_folder.h"
#include "threads/mutex.h"

namespace npyfs {

struct KeepOptions {
  std::shared_ptr<KeptFolder> folder;  // not null
  // What the bytes of all arrays depend on: the program that decodes them; and what the user said
  // of them with every file that was opened to find out what there is, each in its place.
  std::string version;
  Digest dataset{};
  // The split of a data set whose arrays are the same whatever their split is called; else empty.
  std::string only_split{};
};

// Why an array is not kept, in words that follow "not kept".
struct NotKept {
  std::string why;
  bool is_needless = false;  // it would be read no faster
};

// Nothing: it is kept. Whatever is no array has no reason worth a word.
std::optional<NotKept> why_not_kept(const File& file);

// What the bytes of a kept array depend on; `path` is the file's in the mount. Nothing where
// why_not_kept() says something, and where nobody can tell whether its sources are still the same.
std::optional<KeptKey> kept_key(const KeepOptions& options, const std::string& path,
                                const File& file);

// The label of a kept array says what `npyfs cache` shows.
struct KeptLabel {
  std::string path;    // "train/x.npy"
  std::string source;  // the path of the first of its sources
};
KeptLabel parse_label(std::string_view label);

// The array of a file, made where there is none and the folder may be written to. Null where it is
// not kept.
std::shared_ptr<KeptArray> open_kept(const KeepOptions& options, const std::string& path,
                                     const File& file);
// The same, where there is one.
std::shared_ptr<KeptArray> find_kept(const KeepOptions& options, const std::string& path,
                                     const File& file);

// Any thread. Opening an array looks at the disk: others wait for that only where they open the
// same one.
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
  // in the mount. Null for a file that is not kept, and where it cannot be.
  std::shared_ptr<KeptArray> open(Ino ino, const std::string& path, const File& file);
  // The same, but null where the array is not complete. Makes nothing.
  std::shared_ptr<KeptArray> find_complete(Ino ino, const std::string& path, const File& file);

  // A reader was given the bytes in `parts`, from `offset` of the file on. Never throws, never
  // waits.
  void note_read(const std::shared_ptr<KeptArray>& array, std::uint64_t offset,
                 std::span<const iovec> parts) noexcept;

  // What was seen of the array of a file when it was opened last; it may have gone since.
  struct Seen {
    std::shared_ptr<const KeptArray> array;  // null: nobody has it open, as far as is known
    bool is_complete = false;
  };
  Seen last_seen(Ino ino) const;

  const KeptCounts& counts() const { return options_.folder->counts(); }
  FillQueue::Counts queue_counts() const { return queue_ ? queue_->counts() : FillQueue::Counts(); }
  // Whether anything is written.
  bool writes() const { return queue_.has_value(); }
  // Somebody else has completed the array of a file.
  void note_complete(Ino ino) { on_complete_(ino); }

 private:
  // What is known of the array of a file.
  struct Known {
    Ino ino = 0;
    // Held by whoever looks for it on the disk.
    std::shared_ptr<Mutex> looking;
    std::weak_ptr<KeptArray> array{};
    // Holds an array in part while it is one of those that were opened last: numpy opens a file
    // three times to map it once, and each new KeptArray checks its blocks anew. Null for a
    // complete array: one that is held cannot be evicted.
    std::shared_ptr<KeptArray> held{};
  };
  static constexpr std::size_t kMostKnown = 64;

  void note_complete(const std::shared_ptr<KeptArray>& array);
  std::shared_ptr<Mutex> looking_for(Ino ino);
  std::shared_ptr<KeptArray> find_known(Ino ino);
  void remember(Ino ino, const std::shared_ptr<Mutex>& looking,
                const std::shared_ptr<KeptArray>& array);

  const KeepOptions options_;
  const std::function<void(Ino)> on_complete_;
  mutable Mutex mutex_;                                  // held for memory alone
  std::list<Known> known_ GUARDED_BY(mutex_);            // those that were opened last first
  std::unordered_set<Ino> complete_ GUARDED_BY(mutex_);  // when they were opened last
  std::optional<FillQueue> queue_;                       // last: its threads call note_complete()
};

}  // namespace npyfs
