// SPDX-License-Identifier: Apache-2.0
//
// Immutable named bytes of known size: a local file, memory, a decompressed stream. Formats read
// through this and nothing else, so that they need not know which of these they have.

#pragma once

#include <sys/uio.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "formats/bytes/regular_file.h"

namespace npyfs {

// What a read costs beside its bytes: readers choose by it how much they ask for at once. The
// numbers of a local file, as they were measured, unless a source says otherwise.
struct ReadCost {
  // Until the first byte comes, however few are asked for. A system call.
  std::chrono::microseconds latency{1};
  // How fast bytes come from then on.
  std::uint64_t nbytes_per_us = 4096;
  // Asking for more at once makes a byte no cheaper.
  std::uint64_t best_nbytes = std::uint64_t{256} << 10;

  // Reading over so many unwanted bytes takes no longer than another read.
  std::uint64_t gap_nbytes() const {
    return static_cast<std::uint64_t>(latency.count()) * nbytes_per_us;
  }
  // What is read at once at most where neighbours are put together.
  std::uint64_t most_nbytes() const { return 4 * best_nbytes; }
};

// Bytes of a source that somebody wants, and where.
struct WantedRange {
  std::uint64_t offset = 0;
  std::span<std::byte> out;
};

// Calls read_parts(offset, parts) for each run of `ranges` that are read together: those that lie
// at most cost.gap_nbytes() behind the one before, with what lies between them. In parts that stay
// valid for the call alone.
void read_neighbours(
    std::span<const WantedRange> ranges, const ReadCost& cost,
    const std::function<void(std::uint64_t offset, std::span<const iovec> parts)>& read_parts);

// All members may be called from any thread.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;

  // For messages: the location as the user wrote it.
  const std::string& name() const { return name_; }
  std::uint64_t nbytes() const { return nbytes_; }
  // Newest modification time of what the bytes come from, nanoseconds since the epoch.
  std::int64_t mtime_ns() const { return mtime_ns_; }

  // Fills `out` with the bytes from `offset` on, completely, or throws: kCorrupt where the range
  // does not lie within nbytes(), kChanged where the source has shrunk since, kIo otherwise.
  void read_at(std::uint64_t offset, std::span<std::byte> out) const;
  // The same, bytes that follow each other to several places in memory, which are filled in order.
  void read_parts_at(std::uint64_t offset, std::span<const iovec> parts) const;
  // Fills each of `ranges` as read_at() does. Those that lie at most cost().gap_nbytes() behind the
  // one before are read with it; a source may ask for several at the same time.
  void read_ranges(std::span<const WantedRange> ranges) const;
  // Throws the kCorrupt of read_at, reading nothing: to be asked before memory is taken for a
  // length that a file claims.
  void require_within(std::uint64_t offset, std::uint64_t nbytes) const;

  // What the bytes were when the source was opened; for what is decoded or put together, that of
  // what it comes from. Does not exist for what lies in memory.
  virtual Identity identity() const { return {}; }
  // The absolute path of the local file that the bytes come from, decoded or not; of several files,
  // the first one's. Empty if they come from none.
  virtual std::string path() const { return {}; }
  virtual ReadCost cost() const { return {}; }

  // Throws kChanged once identity() is not what its path leads to any more; from then on, always.
  // Bytes that were read before a call that returns are those of the source that was opened.
  virtual void check_unchanged() const {}
  // Whether check_unchanged() has ever thrown.
  virtual bool changed() const { return false; }
  // The same for files that it is put together from and that check_unchanged() does not ask: at
  // most `count` of them, from number `first` on, where the first one follows the last one.
  virtual void check_parts(std::size_t /*first*/, std::size_t /*count*/) const {}
  // Whether all files that bytes may come from were looked at when it was opened, so that
  // OpenedFiles has them.
  virtual bool knows_its_files() const { return true; }
  // Whether it is all of one local file, byte for byte, which open_again() opens.
  virtual bool is_file() const { return false; }
  // A new descriptor (O_CLOEXEC, the caller's) of the very file that was opened, for another
  // process, or the kernel, to read. Throws kChanged where its path leads to another one by now,
  // kUnsupported for what is no file of its own.
  virtual int open_again() const;
  // What a read at a random place costs, where it is not just that many bytes read from a file;
  // else empty. For `npyfs info`.
  virtual std::string access() const { return {}; }

 protected:
  ByteSource(std::string name, std::uint64_t nbytes, std::int64_t mtime_ns)
      : name_(std::move(name)), nbytes_(nbytes), mtime_ns_(mtime_ns) {}

  // What read_at() notes for SourceWatch, for sources that can be read in other ways too.
  void note_read() const;

  // `offset` and `out` lie within the source.
  virtual void do_read(std::uint64_t offset, std::span<std::byte> out) const = 0;
  // By do_read and a copy, unless the source knows better.
  virtual void do_read_parts(std::uint64_t offset, std::span<const iovec> parts) const;
  // By a do_read_parts for each run of neighbours, one after another, unless the source knows
  // better.
  virtual void do_read_ranges(std::span<const WantedRange> ranges) const;

 private:
  std::string name_;
  std::uint64_t nbytes_;
  std::int64_t mtime_ns_;
};

using SourcePtr = std::shared_ptr<const ByteSource>;

// All of a small file. Throws kTooLarge where it has more than `most_nbytes`.
std::string read_whole(const ByteSource& source, std::uint64_t most_nbytes);

// Remembers that a source has changed; count_changed_sources() counts those that are set. Any
// thread.
class ChangeMark {
 public:
  bool is_set() const { return set_.load(std::memory_order_relaxed); }
  void set() const;

 private:
  mutable std::atomic<bool> set_{false};
};

// Remembers which sources this thread reads while it lives, so that whoever answers with what was
// read can make sure that none of them had changed. Scopes nest; the innermost one remembers.
class SourceWatch {
 public:
  SourceWatch();
  ~SourceWatch();
  SourceWatch(const SourceWatch&) = delete;
  SourceWatch& operator=(const SourceWatch&) = delete;

  // Throws kChanged if one of them has.
  void check_unchanged() const;
  // Each source that was read, at least once.
  const std::vector<const ByteSource*>& read() const { return read_; }

 private:
  friend class ByteSource;
  SourceWatch* outer_;
  std::vector<const ByteSource*> read_;
};

// Remembers what the files that this thread opens or looks at are, while it lives: that is what an
// index that was made meanwhile depends on. Scopes nest; the innermost one remembers.
class OpenedFiles {
 public:
  OpenedFiles();
  ~OpenedFiles();
  OpenedFiles(const OpenedFiles&) = delete;
  OpenedFiles& operator=(const OpenedFiles&) = delete;

  struct File {
    Identity identity;
    std::uint64_t path_hash = 0;  // of its absolute path, or of its key in a store
  };
  // In the order in which they were opened, a file as often as it was.
  const std::vector<File>& files() const { return files_; }

  // Adds one, if anybody remembers; one that is not there has an Identity that does not exist.
  // `path` tells it from others.
  static void note(const Identity& identity, const std::string& path);

 private:
  OpenedFiles* outer_;
  std::vector<File> files_;
};

// How many sources of this process have ever been found changed: while that stays the same, nobody
// needs to ask one by one again.
std::uint64_t count_changed_sources();

// Throws kChanged if one of `sources` has been found changed; asks nobody anew.
void require_unchanged(const std::vector<SourcePtr>& sources);

// 0 for none.
std::int64_t newest_mtime_ns(const std::vector<SourcePtr>& sources);

// A regular file, read by pread.
class FileSource : public ByteSource {
 public:
  // Opens `path`; `name` is what messages call it. Throws kNotFound, and as RegularFile::open.
  static std::shared_ptr<FileSource> open(const std::string& path, const std::string& name,
                                          const Confinement& confinement = {});

  void check_unchanged() const override;
  bool changed() const override { return changed_.is_set(); }
  Identity identity() const override { return file_->identity(); }
  std::string path() const override { return file_->path(); }
  bool is_file() const override { return true; }
  int open_again() const override;

 private:
  FileSource(std::string name, std::unique_ptr<const RegularFile> file);
  void do_read(std::uint64_t offset, std::span<std::byte> out) const override;
  void do_read_parts(std::uint64_t offset, std::span<const iovec> parts) const override;
  template <typename Use>
  auto watch(const Use& use) const;

  std::unique_ptr<const RegularFile> file_;
  ChangeMark changed_;
};

// Bytes held in memory, for tests and for small things that a format makes itself.
class MemorySource : public ByteSource {
 public:
  MemorySource(std::string name, std::vector<std::byte> bytes);

 private:
  void do_read(std::uint64_t offset, std::span<std::byte> out) const override;

  std::vector<std::byte> bytes_;
};

// Reads small things at rising offsets (headers of records) without a system call for each where
// they lie close together, and without reading what lies between where they do not. One thread.
class WindowReader {
 public:
  explicit WindowReader(const ByteSource& source) : WindowReader(source, near_nbytes_of(source)) {}
  // Two small things at most `near_nbytes` apart are read with what lies between them.
  WindowReader(const ByteSource& source, std::size_t near_nbytes)
      : source_(source), near_nbytes_(near_nbytes) {}

  // `nbytes` bytes at `offset`; valid until the next call. Throws as ByteSource::read_at.
  std::span<const std::byte> at(std::uint64_t offset, std::size_t nbytes);
  // The same with whatever else is at hand behind them.
  std::span<const std::byte> at_least(std::uint64_t offset, std::size_t nbytes);

 private:
  static std::size_t near_nbytes_of(const ByteSource& source);

  const ByteSource& source_;
  std::size_t near_nbytes_;
  std::vector<std::byte> window_;
  std::uint64_t window_offset_ = 0;
  std::uint64_t last_offset_ = 0;
};

}  // namespace npyfs
