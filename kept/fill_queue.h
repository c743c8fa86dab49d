// SPDX-License-Identifier: Apache-2.0
//
// Keeps what readers were given: their pieces become blocks; one thread writes these into the page
// cache, another one syncs them and says that they are there. Both leave the processor to others:
// where readers need all of it, and where the disk is too slow, blocks are lost, and no reader ever
// waits for it.

#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "kept/half_blocks.h"
#include "kept/kept_array.h"
#include "threads/mutex.h"

namespace npyfs {

struct FillOptions {
  // Memory for blocks that are not full yet, and for those that wait to be written.
  std::uint64_t most_half_nbytes = 16 * kKeptBlockNbytes;
  std::uint64_t most_waiting_nbytes = 16 * kKeptBlockNbytes;
  // An array has become complete, by this process or by another one. Called by a thread of the
  // queue.
  std::function<void(const std::shared_ptr<KeptArray>&)> on_complete =
      [](const std::shared_ptr<KeptArray>&) {};
};

// All members may be called from any thread.
class FillQueue {
 public:
  // Starts the threads: not before a daemon has forked. Throws std::system_error where the system
  // has none to give.
  explicit FillQueue(FillOptions options = {});
  // Writes and syncs the blocks that are full; the others are lost.
  ~FillQueue();
  FillQueue(const FillQueue&) = delete;
  FillQueue& operator=(const FillQueue&) = delete;

  // Bytes of the array file from `offset` on, as a reader has them. Copies what is not kept yet,
  // and waits for nothing; what there is no memory for is dropped. Never throws.
  void push(const std::shared_ptr<KeptArray>& array, std::uint64_t offset,
            std::span<const std::byte> bytes) noexcept;
  // Whether push() would drop these bytes, since they are kept or on their way: then they need not
  // be put together.
  bool has(const std::shared_ptr<KeptArray>& array, std::uint64_t offset,
           std::uint64_t nbytes) const noexcept;

  // Drops the blocks of an array that are not full: nobody reads it any more, say. While there are
  // any the queue holds the array.
  void forget(const KeptArray& array) noexcept { halves_.forget(array); }

  // Has a thread read all of an array, so that it can be served natively: for
  // KeptArray::needs_check().
  void check_later(const std::shared_ptr<KeptArray>& array) noexcept;

  // Returns once all blocks that were full before are there, or given up. The caller works on it,
  // too: he is in a hurry, the threads are not.
  void drain();

  struct Counts {
    std::uint64_t waiting_nbytes = 0;
    std::uint64_t dropped_blocks = 0;  // for lack of memory, or since they could not be written
  };
  Counts counts() const;

 private:
  using Key = std::pair<const KeptArray*, std::uint64_t>;

  using Keys = std::vector<std::uint64_t>;

  void add_waiting(FullBlock full);
  void write_all();
  void sync_all();
  bool write_some();
  bool sync_some();
  std::span<FullBlock> take_blocks(std::span<FullBlock> into) REQUIRES(mutex_);
  void write(std::span<FullBlock> blocks);
  // False where there is no memory to remember it.
  bool note_unsynced(const FullBlock& full) REQUIRES(mutex_);
  void sync(const std::shared_ptr<KeptArray>& array, const Keys& blocks);
  bool can_sync() const REQUIRES(mutex_);
  bool is_idle() const REQUIRES(mutex_);

  FillOptions options_;
  HalfBlocks halves_;
  mutable Mutex mutex_;
  Condition changed_;
  std::deque<FullBlock> waiting_ GUARDED_BY(mutex_);
  std::map<std::shared_ptr<KeptArray>, Keys> unsynced_ GUARDED_BY(mutex_);
  std::deque<std::shared_ptr<KeptArray>> to_check_ GUARDED_BY(mutex_);
  std::set<Key> on_their_way_ GUARDED_BY(mutex_);  // waiting, or not there yet
  std::uint64_t waiting_nbytes_ GUARDED_BY(mutex_) = 0;
  std::uint64_t dropped_ GUARDED_BY(mutex_) = 0;
  int writing_ GUARDED_BY(mutex_) = 0;  // threads that are at it
  bool is_syncing_ GUARDED_BY(mutex_) = false;
  bool is_ending_ GUARDED_BY(mutex_) = false;
  std::thread writer_;
  std::thread syncer_;
};

}  // namespace npyfs
