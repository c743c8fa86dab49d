// SPDX-License-Identifier: Apache-2.0
//
// The cache folder: kept arrays of all mounts of one user on this machine, bounded, least recently
// used ones evicted first. Several processes use it at once, and any of them may be killed.

#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "formats/bytes/error.h"
#include "kept/disk_file.h"
#include "kept/kept_array.h"
#include "kept/kept_key.h"

namespace npyfs {

struct KeptOptions {
  // Whether the folder is made where it is missing, and whether anything in it is changed.
  enum class Access { kMakes, kWrites, kReads };
  Access access = Access::kMakes;
  // What all files in the folder may take on the disk; nothing: 80 % of what is free there or
  // theirs already.
  std::optional<std::uint64_t> most_nbytes;
  // How long a writer waits for another process that writes to the same array.
  std::chrono::milliseconds lock_wait{100};
  // An array that is open somewhere and was used within this time loses no blocks to others.
  std::chrono::seconds spared_after_use{600};
  // Nor is any array evicted that was used since then, in nanoseconds since the epoch: who fills a
  // folder with more than it takes does not lose the first arrays to the last ones.
  std::int64_t spared_since_ns = std::numeric_limits<std::int64_t>::max();
  // How long nothing is written after the disk failed.
  std::chrono::milliseconds pause_after_failure{10'000};
  // One line for whoever runs the mount. Any thread.
  std::function<void(const std::string& text)> tell = [](const std::string&) {};
};

// Since the folder was opened, by this process. Any thread; read one by one.
struct KeptCounts {
  std::atomic<std::uint64_t> read_hits{0};
  std::atomic<std::uint64_t> read_misses{0};
  std::atomic<std::uint64_t> read_nbytes{0};
  std::atomic<std::uint64_t> blocks_written{0};
  std::atomic<std::uint64_t> blocks_checked{0};
  std::atomic<std::uint64_t> blocks_bad{0};  // that did not fit their CRC
  std::atomic<std::uint64_t> arrays_completed{0};
  std::atomic<std::uint64_t> evicted_nbytes{0};
};

// The names of an array's files; the map's is there as long as any of them, but for leftovers.
std::string map_name(const std::string& name);
std::string part_name(const std::string& name);
std::string complete_name(const std::string& name);
// Removes the files of an array; whoever reads it reads on. Throws kIo.
void remove_kept_files(const DiskFolder& disk, const std::string& name);

// All members may be called from any thread.
class KeptFolder : public std::enable_shared_from_this<KeptFolder> {
 public:
  // Makes the folder where it is missing, and clears away what dead processes left, as far as
  // `options.access` goes. A folder that cannot be written to is read from. Throws kNotFound, kIo,
  // and kUnsupported where it is not safe (DiskFolder).
  static std::shared_ptr<KeptFolder> open(const std::string& path, KeptOptions options = {});

  // The array of this key, whose file has so many bytes, complete or in part; made where there is
  // none. What is there and is not this array's is removed. `head` is what the file begins with
  // (its header), if that is known: whoever fills blocks need not bring these bytes. Null where
  // that cannot be: the disk fails, which is told once, or the folder is read-only and has no such
  // array. Whoever holds the array keeps it from being evicted
  // if it is complete.
  std::shared_ptr<KeptArray> open(const KeptKey& key, std::uint64_t nbytes,
                                  std::span<const std::byte> head = {}) noexcept;
  // The same, but null where there is none.
  std::shared_ptr<KeptArray> find(const KeptKey& key, std::uint64_t nbytes) noexcept;

  const DiskFolder& disk() const { return disk_; }
  const KeptOptions& options() const { return options_; }
  bool is_read_only() const { return is_read_only_; }
  std::uint64_t most_nbytes() const { return most_nbytes_; }
  KeptCounts& counts() const { return counts_; }

  // Whether so many bytes may be written now, to the array `except`, after others were evicted if
  // need be. Never throws.
  bool make_room(std::uint64_t nbytes, const std::string& except) noexcept;

  // Removes the files of an array; waits for its writer, but not for long: false then. Those who
  // read it read on. Throws kIo.
  bool drop(const std::string& name);

  // Tells this kind of trouble the first time, and pauses writing.
  void note_failure(const Error& error) noexcept;
  // Whether writing is paused.
  bool is_paused() const;

 private:
  KeptFolder(const std::string& path, KeptOptions options);
  struct Wanted {
    const KeptKey& key;
    std::uint64_t nbytes = 0;
    std::span<const std::byte> head;
    bool makes = false;
  };
  enum class Look { kOpened, kNone, kForeign };

  std::shared_ptr<KeptArray> open(const Wanted& wanted) noexcept;
  Look try_open(const Wanted& wanted, std::shared_ptr<KeptArray>& array);
  bool make_map(const KeptKey& key, std::uint64_t nbytes);
  DiskFile open_part(const BlockMap& map, const std::string& name);
  void tell_once(std::atomic<bool>& told, const std::string& text) noexcept;

  DiskFolder disk_;
  KeptOptions options_;
  bool is_read_only_;
  std::uint64_t most_nbytes_ = 0;
  mutable KeptCounts counts_;
  std::atomic<bool> told_full_{false};
  std::atomic<bool> told_failure_{false};
  std::atomic<std::int64_t> paused_until_ns_{0};
  std::atomic<std::uint64_t> next_number_{0};  // of temporary files
};

// Holds the writer's lock of an array's map.
class WriterLock {
 public:
  // Tries for so long. Throws kIo.
  WriterLock(const DiskFile& map, std::chrono::milliseconds wait);
  ~WriterLock();
  WriterLock(const WriterLock&) = delete;
  WriterLock& operator=(const WriterLock&) = delete;

  explicit operator bool() const { return is_held_; }

 private:
  const DiskFile& map_;
  bool is_held_ = false;
};

}  // namespace npyfs
