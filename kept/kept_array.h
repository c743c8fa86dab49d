// SPDX-License-Identifier: Apache-2.0
//
// One array file in the cache folder, header and data: in part (NAME.npy.part, with holes) or
// complete (NAME.npy, a plain file), with its map beside it. README.md says what is believed when.

#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "formats/bytes/byte_source.h"
#include "formats/bytes/error.h"
#include "kept/block_map.h"
#include "kept/block_trust.h"
#include "kept/disk_file.h"
#include "threads/mutex.h"

namespace npyfs {

class KeptFolder;
class WriterLock;

// All members may be called from any thread, and none throws: what fails is a miss, and is told
// once by the folder.
class KeptArray {
 public:
  // Made by KeptFolder::open.
  KeptArray(std::shared_ptr<KeptFolder> folder, BlockMap map, DiskFile data, bool is_part,
            std::vector<std::byte> head);
  ~KeptArray();
  KeptArray(const KeptArray&) = delete;
  KeptArray& operator=(const KeptArray&) = delete;

  const std::string& name() const { return name_; }
  // The size of the array file.
  std::uint64_t nbytes() const { return map_.array_nbytes(); }
  std::uint64_t block_count() const { return map_.block_count(); }
  std::uint64_t block_nbytes(std::uint64_t block) const { return map_.block_nbytes(block); }
  // The bytes that the array file begins with, where whoever opened it has said so.
  std::span<const std::byte> head() const { return head_; }

  // Fills `out` with the bytes from `offset` on and returns true, or returns false: then `out`
  // holds nothing in particular, and the bytes have to come from the sources. Takes no lock for
  // blocks that were read before; a block that another process has written is read as a whole the
  // first time, and held against its CRC.
  bool read(std::uint64_t offset, std::span<std::byte> out) const noexcept;
  // The same for several ranges, all or none of them; those close together are read as one.
  bool read(std::span<const WantedRange> ranges) const noexcept;
  // Whether read() serves these bytes, unless blocks go away meanwhile. Reads blocks that nobody
  // has read before.
  bool can_read(std::uint64_t offset, std::uint64_t nbytes) const noexcept;
  // Whether a read within the block would be served without looking at its CRC. No system call.
  bool has(std::uint64_t block) const noexcept;

  // Whether the array is complete and its file is known to be good.
  bool is_complete() const noexcept { return complete_fd_.load() >= 0; }
  // The complete file, open for reading, for the kernel to read from: -1 before is_complete(), then
  // the same descriptor, open as long as the array lives (-1 again where check() found the file
  // bad). No npyfs writes to this file ever again.
  int complete_descriptor() const noexcept { return complete_fd_.load(); }
  // Looks whether another process has completed the array since, or taken blocks away.
  void refresh() noexcept;
  // To be told of each read of so many bytes, kept or not. True once: when these, and those that
  // were kept when it was opened, are three quarters of the array.
  bool note_asked(std::uint64_t nbytes) noexcept;
  // Counts as a use of the array: to be called where the kernel reads it itself. read() does so.
  void note_use() const noexcept;

  // What another has done to the array, so that blocks are kept here no more; KeptFolder::open then
  // makes it anew. What was kept stays readable.
  bool is_dropped() const noexcept { return is_dropped_.load(); }

  struct BlockBytes {
    std::uint64_t block = 0;
    std::span<const std::byte> bytes;  // block_nbytes(block) of them
  };
  enum class Outcome {
    kKept,     // all of them are there now
    kBusy,     // another process was writing for too long
    kNoRoom,   // the folder has no room, or the disk
    kFailed,   // the disk failed, or may not be written to
    kDropped,  // is_dropped()
  };
  // Writes the blocks that are not there yet. They are there once publish() has synced them. May
  // wait for the disk: not for threads that answer a reader.
  Outcome add_blocks(std::span<const BlockBytes> blocks) noexcept;
  // Syncs what add_blocks() has written, and then says in the map that it is there; the last one of
  // all blocks completes the array. Others may add blocks meanwhile. kBusy: to be called again.
  Outcome publish() noexcept;
  // Both.
  Outcome write_blocks(std::span<const BlockBytes> blocks) noexcept;
  // Whether the block is there, and good. Reads it if that is not known yet.
  bool holds(std::uint64_t block) noexcept;

  // Whether the file is complete, but not as it was left (it was copied, or somebody wrote to it):
  // it is served by blocks, each held against its CRC, until check() has seen all of it.
  bool needs_check() const noexcept { return !is_part_.load() && !is_complete(); }
  // Reads all that is there. False where a block was not good; then that block is gone, and of a
  // complete file all. Completes the array if only that was missing.
  bool check() noexcept;

 private:
  enum class Start { kReady, kBusy, kOver };

  bool try_read(std::span<const WantedRange> ranges) const;
  bool read_file(std::span<const WantedRange> ranges) const;
  bool believes(std::uint64_t offset, std::uint64_t nbytes) const;
  bool is_believed(std::uint64_t block) const;
  bool try_believe(std::uint64_t block) const;
  void follow_generation() const;
  Start start_writing(const WriterLock& lock) REQUIRES(writing_);
  template <typename Work>
  Outcome at_work(const Work& work) noexcept;
  Outcome outcome_of(Start start) const;
  void add_locked(std::span<const BlockBytes> blocks) REQUIRES(writing_);
  Outcome publish_synced(const std::map<std::uint64_t, std::uint32_t>& synced);
  void follow_pending() REQUIRES(writing_);
  void give_up_pending() noexcept;
  void complete_if_all_are_there() REQUIRES(writing_);
  bool find_completed();
  void forsake();
  void note(const Error& error) const noexcept;
  void stamp_file(const DiskFile& file) REQUIRES(writing_);
  bool check_blocks();

  std::shared_ptr<KeptFolder> folder_;
  BlockMap map_;
  std::string name_;
  DiskFile data_;  // the file that blocks are read from; renaming it does not change it
  std::vector<std::byte> head_;
  mutable BlockTrust trust_;
  std::atomic<bool> is_part_;  // when it was last looked at
  mutable std::atomic<bool> is_dropped_{false};
  mutable std::atomic<std::int64_t> used_at_s_{0};
  // Held by those who write and complete, as the lock of the file is its descriptor's, which all
  // threads share. Not held while blocks are synced. Before `completing_`.
  Mutex writing_;
  // Written, and not synced for all that is known: block and CRC; since the map had this
  // generation.
  std::map<std::uint64_t, std::uint32_t> pending_ GUARDED_BY(writing_);
  std::uint64_t pending_generation_ GUARDED_BY(writing_) = 0;
  std::uint64_t first_absent_ GUARDED_BY(writing_) = 0;  // none before it, in this generation:
  std::uint64_t hint_generation_ GUARDED_BY(writing_) = 0;
  Mutex completing_;
  bool is_spoilt_ GUARDED_BY(completing_) = false;  // check() found the complete file bad
  DiskFile complete_ GUARDED_BY(completing_);       // set once
  std::atomic<int> complete_fd_{-1};                // its descriptor
  std::atomic<std::uint64_t> asked_nbytes_{0};      // and kept when it was opened
};

}  // namespace npyfs
