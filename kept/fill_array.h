// SPDX-License-Identifier: Apache-2.0
//
// Fills what a kept array lacks, from its first block to its last, ahead of readers.

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "formats/bytes/block_memory.h"
#include "kept/kept_array.h"
#include "threads/mutex.h"

namespace npyfs {

// Fills `out` with the bytes of the array file from `offset` on. An Error: they cannot be had (a
// damaged record), and no block that they lie in is kept; kChanged ends the filling.
using ReadArrayFile = std::function<void(std::uint64_t offset, std::span<std::byte> out)>;

enum class FillEnd {
  kComplete,  // the array is complete
  kDamaged,   // but for blocks that could not be read all are there
  kStopped,   // somebody wanted it to end
  kChanged,   // a source is no longer the one whose bytes are to be kept
  kNoRoom,    // the folder has no room, or the disk
  kFailed,    // the disk failed, or may not be written to; or there is no memory
  kDropped,   // KeptArray::is_dropped()
  kBusy,      // another process wrote to it for too long
};

// One array that is being filled by any number of threads. Other processes may fill it too: they
// do the same work, and it is right all the same. Any thread; nothing is thrown.
class ArrayFill {
 public:
  // `is_stopping` is asked before each block.
  ArrayFill(
      std::shared_ptr<KeptArray> array, ReadArrayFile read,
      std::function<bool()> is_stopping = [] { return false; });

  // Goes through the next few blocks: what an earlier run has kept is read once and held against
  // its CRC, the rest is read and written. Returns how many bytes of the array these are; nothing
  // where none are left, or where the filling has ended before them.
  std::optional<std::uint64_t> fill_some() noexcept;
  // Syncs what was written, and completes the array if all is there. To be called once, after the
  // last fill_some() has returned.
  FillEnd finish() noexcept;

  // Blocks that could not be read, and what the first of them said; or why it ended.
  std::uint64_t unread_blocks() const;
  std::string why() const;

 private:
  struct Taken {
    std::uint64_t first = 0;
    std::uint64_t end = 0;
  };
  // Blocks that were read and are not written yet.
  struct Batch {
    std::vector<Buffer> buffers;
    std::vector<KeptArray::BlockBytes> blocks;
  };

  std::optional<Taken> take();
  void read_blocks(const Taken& taken, Batch& batch);
  bool try_read(std::uint64_t block, std::span<std::byte> out);
  void write(const Batch& batch);
  void publish();
  void note_unread(std::uint64_t block, const std::string& why);
  void end(FillEnd end, const std::string& why = {});
  void end(KeptArray::Outcome outcome);

  const std::shared_ptr<KeptArray> array_;
  const ReadArrayFile read_;
  const std::function<bool()> is_stopping_;
  mutable Mutex mutex_;
  std::uint64_t next_ GUARDED_BY(mutex_) = 0;      // block that nobody has taken
  std::uint64_t unsynced_ GUARDED_BY(mutex_) = 0;  // blocks
  std::uint64_t unread_ GUARDED_BY(mutex_) = 0;
  std::uint64_t first_unread_ GUARDED_BY(mutex_) = 0;
  std::optional<FillEnd> ended_ GUARDED_BY(mutex_);
  std::string why_ GUARDED_BY(mutex_);
};

}  // namespace npyfs
