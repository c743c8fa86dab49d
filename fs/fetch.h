// SPDX-License-Identifier: Apache-2.0
//
// Planned pieces become bytes: neighbours in a source are read together, records are verified
// before they are answered, decoded chunks come out of the cache.

#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
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
  void clear();

 private:
  friend class Fetcher;
  std::vector<iovec> parts_;
  std::vector<std::shared_ptr<const Block>> pinned_;
  Scratch scratch_;
  Scratch window_;
};

// Any thread; stateless but for what it refers to.
class Fetcher {
 public:
  Fetcher(ChunkCache& cache, VerifiedRecords& verified) : cache_(cache), verified_(verified) {}

  // Fills `out` (cleared first) with all bytes of `plan`, at most kMostParts parts, or throws. The
  // sources they came from had not changed when the last of them was read.
  void fetch(const Plan& plan, Gathered& out) const;

  // writev takes 1024 parts; far fewer are cheaper to copy together than to hand over one by one.
  static constexpr std::size_t kMostParts = 64;

 private:
  std::size_t read_run(const std::vector<Piece>& pieces, std::size_t first, std::byte* copy_to,
                       Gathered& out) const;

  ChunkCache& cache_;
  VerifiedRecords& verified_;
};

}  // namespace npyfs
