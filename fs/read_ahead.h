// SPDX-License-Identifier: Apache-2.0
//
// Decodes what readers in order will ask for next, on threads of its own.

#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <thread>
#include <vector>

#include "formats/bytes/byte_range.h"
#include "fs/block_cache.h"
#include "fs/file.h"
#include "threads/mutex.h"

namespace npyfs {

// Any thread.
class ReadAhead {
 public:
  // Starts `threads` threads, or as many as the system gives. Chunks decoded ahead take at most
  // about a quarter of the cache, shared equally by kMostReaders.
  ReadAhead(BlockCache& cache, unsigned threads);
  // Waits for the chunks that are being decoded just now.
  ~ReadAhead();
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;

  // A read of `range` of `file` was answered from decoded chunks, of which `uses` were taken; the
  // kernel keeps what it got, or not (O_DIRECT). Does not wait for any decoding. The file is not
  // kept for longer than it takes to decode what is wanted of it now.
  void note_read(const std::shared_ptr<const File>& file, ByteRange range,
                 const std::vector<ChunkUse>& uses, bool kernel_keeps);

  // A reader must have read this many bytes in order before anything is decoded ahead of it. Random
  // windows would decode what nobody wants.
  static constexpr std::uint64_t kLeastRunNbytes = std::uint64_t{512} << 10;

 private:
  // A reader that goes through a file in order, as far as its requests tell.
  struct Reader {
    std::weak_ptr<const File> file;
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::uint64_t read_nbytes = 0;
    std::uint64_t planned_end = 0;  // up to here everything is decoded, or about to be
    std::uint64_t last_used = 0;
    std::uint64_t number = 0;    // of all there have been
    bool has_its_share = false;  // nothing more is done before it has come to planned_end
  };
  struct Task {
    std::shared_ptr<const File> file;
    ByteRange range;
    std::uint64_t reader;
  };

  // Whether somebody reads in order here.
  bool plan_ahead(const std::shared_ptr<const File>& file, ByteRange range) REQUIRES(mutex_);
  Reader& find_reader(const std::shared_ptr<const File>& file, ByteRange range) REQUIRES(mutex_);
  void run();
  // Returns the end of what is decoded now: that of the task, or where the share was used up.
  std::uint64_t decode(const Task& task);
  // Whether the reader `number` has come to `end`.
  bool has_read(std::uint64_t number, std::uint64_t end);
  // Leaves what begins at `end` to the reader.
  void stop_at(std::uint64_t end, const Task& task);

  // The most readers that are told apart at once.
  static constexpr std::size_t kMostReaders = 8;
  static constexpr std::size_t kMostTasks = 64;

  BlockCache& cache_;
  const std::uint64_t share_nbytes_;  // of the cache, for one reader
  const std::uint64_t reads_ahead_;   // of a reader, of the best size
  std::atomic<bool> stop_{false};
  Mutex mutex_;
  Condition wake_;
  std::array<Reader, kMostReaders> readers_ GUARDED_BY(mutex_);
  std::uint64_t clock_ GUARDED_BY(mutex_) = 0;
  std::uint64_t readers_seen_ GUARDED_BY(mutex_) = 0;
  std::deque<Task> tasks_ GUARDED_BY(mutex_);
  std::vector<std::thread> threads_;
};

}  // namespace npyfs
