// SPDX-License-Identifier: Apache-2.0
//
// Planned pieces become bytes: neighbours in a source are read together, records are verified
// before they are answered, decoded chunks come out of the cache.

#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <vector>

#include "formats/bytes/chunk_source.h"
#include "formats/bytes/plan.h"
#include "fs/block_cache.h"
#include "fs/verified_records.h"

namespace npyfs {

// A buffer that grows, is not zeroed, and keeps its memory from read to read.
class Scratch {
 public:
  // The next `nbytes` that are taken lie one after another, in however many pieces they are taken.
  // The first of them begins a page: the kernel copies whole pages in half the time.
  void reserve(std::size_t nbytes);
  // `nbytes`, which stay where they are until clear() or an earlier mark is returned to.
  std::byte* take(std::size_t nbytes);
  // Everything taken is free again. Keeps at most one buffer of kKeptNbytes.
  void clear() noexcept;

  struct Mark {
    std::size_t buffers = 0;
    std::size_t used = 0;  // of the last of them
  };
  Mark mark() const;
  // What has been taken since `mark` is free again; one buffer of it is kept for what is taken
  // next.
  void return_to(const Mark& mark);
  // How much memory this holds, taken or not.
  std::size_t held_nbytes() const;

 private:
  static constexpr std::size_t kKeptNbytes = std::size_t{2} << 20;
  struct Free {
    void operator()(std::byte* bytes) const { std::free(bytes); }
  };
  struct Buffer {
    std::unique_ptr<std::byte[], Free> bytes;
    std::size_t capacity = 0;
    std::size_t used = 0;
  };
  std::vector<Buffer> buffers_;
};

// The bytes of one read, in order, and the memory that holds them. Reused from read to read; one
// thread.
class Gathered {
 public:
  const std::vector<iovec>& parts() const { return parts_; }
  // What came out of decoded chunks. A chunk may be named several times.
  const std::vector<ChunkUse>& chunk_uses() const { return chunk_uses_; }
  // Lets go of all bytes; memory of a usual size is kept.
  void clear() noexcept;
  // The memory that buffers and pinned blocks take.
  std::size_t held_nbytes() const;

 private:
  friend class Fetcher;
  Plan plan_;
  std::vector<iovec> parts_;
  std::vector<ChunkUse> chunk_uses_;
  std::vector<std::shared_ptr<const Block>> pinned_;
  // Bytes that are read into their place in the reply, and bytes that are copied, one after
  // another.
  Scratch scratch_;
  // Bytes that are read together with the gaps between them.
  Scratch window_;
  // Pieces of decoded chunks, and where they are to lie.
  struct Slot {
    const Piece* piece;
    std::byte* to;
  };
  std::vector<Slot> slots_;
  // What one source is asked for.
  std::vector<WantedRange> wanted_;

  // Adds `nbytes` without a copy, or copies them if that is cheaper. Returns whether they were
  // added without a copy.
  bool give(const std::byte* bytes, std::size_t nbytes);
  // Adds `nbytes` for the caller to fill.
  std::byte* add(std::size_t nbytes);
};

// Any thread; stateless but for what it refers to.
class Fetcher {
 public:
  Fetcher(ChunkCache& cache, const VerifiedRecords& verified)
      : cache_(cache), verified_(verified) {}

  // Clears `out` and fills it with the bytes of `range` that exist, in at most kMostParts parts. If
  // it throws, `out` is empty. No source had changed when the last byte was read. Takes memory for
  // a few times `range` and one record of kMostWidenNbytes, for any number of records.
  void read(ByteRange range, const PlanRead& plan_read, Gathered& out) const;

  // writev takes 1024 parts; far fewer are cheaper to copy together than to hand over one by one.
  static constexpr std::size_t kMostParts = 64;

 private:
  void read_all(ByteRange range, const PlanRead& plan_read, Gathered& out) const;
  void append(const std::vector<Piece>& pieces, Gathered& out) const;
  // Adds the pieces from `first` on that come from decoded chunks, asking for each chunk once.
  // Returns the piece behind them.
  std::size_t append_chunks(const std::vector<Piece>& pieces, std::size_t first,
                            Gathered& out) const;
  // Reads the verified extents from `first` on that lie close together in one source. Returns the
  // piece behind them; `first` if that piece is not verified yet.
  std::size_t read_in_place(const std::vector<Piece>& pieces, std::size_t first,
                            Gathered& out) const;
  // Adds the extents from `first` on that lie close together in one source, read with what lies
  // between them and what it takes to verify them. Returns the piece behind them.
  std::size_t append_run(const std::vector<Piece>& pieces, std::size_t first, Gathered& out) const;
  // What has been read of such extents.
  struct Run {
    std::size_t end = 0;  // the piece behind them
    std::span<const std::byte> bytes;
    std::uint64_t offset = 0;  // of `bytes` in the source

    const std::byte* at(const Piece& piece) const { return bytes.data() + (piece.offset - offset); }
  };
  Run read_run(const std::vector<Piece>& pieces, std::size_t first, Scratch& scratch) const;

  ChunkCache& cache_;
  const VerifiedRecords& verified_;
};

}  // namespace npyfs
