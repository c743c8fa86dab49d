// SPDX-License-Identifier: Apache-2.0
//
// Planned pieces become bytes: neighbours in a source are read together, records are verified
// before they are answered, decoded chunks come out of the cache.

#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "formats/bytes/chunk_source.h"
#include "formats/bytes/plan.h"
#include "fs/verified_records.h"

namespace npyfs {

// A buffer that grows, is not zeroed, and keeps its memory from read to read.
class Scratch {
 public:
  // At least `nbytes`, which stay where they are until clear().
  std::byte* take(std::size_t nbytes);
  // Everything taken is free again. Keeps at most one buffer of kKeptNbytes.
  void clear();

 private:
  static constexpr std::size_t kKeptNbytes = std::size_t{2} << 20;
  struct Buffer {
    std::unique_ptr<std::byte[]> bytes;
    std::size_t capacity = 0;
    std::size_t used = 0;
  };
  std::vector<Buffer> buffers_;
};

// The bytes of one read, in order, and what they lie in. Reused from read to read; one thread.
class Gathered {
 public:
  const std::vector<iovec>& parts() const { return parts_; }
  // Lets go of all bytes; memory of a usual size is kept.
  void clear();

 private:
  friend class Fetcher;
  Plan plan_;
  std::vector<iovec> parts_;
  std::vector<std::shared_ptr<const Block>> pinned_;
  Scratch scratch_;
  Scratch window_;
};

// Appends the pieces of a range of a file, or, once the plan is full, of its beginning; nothing
// behind the end of the file.
using PlanRead = std::function<void(ByteRange range, Plan& plan)>;

// Any thread; stateless but for what it refers to.
class Fetcher {
 public:
  Fetcher(ChunkCache& cache, VerifiedRecords& verified) : cache_(cache), verified_(verified) {}

  // Fills `out` (cleared first) with all bytes of `range` that there are, in at most kMostParts
  // parts, or throws. The sources they came from had not changed when the last of them was read.
  void read(ByteRange range, const PlanRead& plan_read, Gathered& out) const;

  // writev takes 1024 parts; far fewer are cheaper to copy together than to hand over one by one.
  static constexpr std::size_t kMostParts = 64;

 private:
  void hand_over(const std::vector<Piece>& pieces, Gathered& out) const;
  void copy(const std::vector<Piece>& pieces, std::byte* to, Gathered& out) const;
  // What has been read of the extents from one on that lie close together in one source.
  struct Run {
    std::size_t end = 0;  // the piece behind them
    const std::byte* bytes = nullptr;
    std::uint64_t offset = 0;  // of `bytes` in the source

    const std::byte* at(const Piece& piece) const { return bytes + (piece.offset - offset); }
  };
  Run read_run(const std::vector<Piece>& pieces, std::size_t first, Scratch& scratch) const;

  ChunkCache& cache_;
  VerifiedRecords& verified_;
};

}  // namespace npyfs
