// SPDX-License-Identifier: Apache-2.0

#include "fs/fetch.h"

#include <algorithm>
#include <cstring>

#include "formats/format.h"

namespace npyfs {

namespace {

// Extents at most this far apart are read in one go: a page more costs less than a system call.
constexpr std::uint64_t kMergeGap = 4096;
constexpr std::uint64_t kMostRunNbytes = std::uint64_t{1} << 20;
// A record up to this size is read whole with the part that was asked for, to be verified in the
// same buffer; a larger one is verified on its own first.
constexpr std::uint64_t kMostWidenNbytes = std::uint64_t{256} << 10;

void fill(std::byte* out, const Piece& piece) {
  const std::size_t period = piece.pattern_nbytes;
  const auto same = [&](std::size_t i) { return piece.memory[i] == piece.memory[0]; };
  bool uniform = true;
  for (std::size_t i = 1; i < period; ++i) {
    uniform = uniform && same(i);
  }
  if (uniform) {
    std::memset(out, static_cast<int>(piece.memory[0]), piece.nbytes);
    return;
  }
  for (std::uint64_t i = 0; i < piece.nbytes; ++i) {
    out[i] = piece.memory[(piece.offset + i) % period];
  }
}

// Widens `window` to the whole of an unverified record at its edge, with the checksum behind it.
void widen(ByteRange& window, const ByteSource& source, const Guard& guard, std::uint64_t record) {
  const auto checksum = guard.table->checksum(record);
  if (!checksum || checksum->payload.source != &source ||
      checksum->payload.nbytes > kMostWidenNbytes) {
    return;
  }
  const Extent& payload = checksum->payload;
  window.begin = std::min(window.begin, payload.offset);
  window.end = std::max(window.end, payload.offset + payload.nbytes);
  const Extent& stored = checksum->stored;
  if (stored.source == &source && stored.offset >= payload.offset &&
      stored.offset - payload.offset <= payload.nbytes) {
    window.end = std::max(window.end, stored.offset + stored.nbytes);
  }
}

bool continues_run(const Piece& before, const Piece& next, std::uint64_t run_begin) {
  const std::uint64_t end = before.offset + before.nbytes;
  return next.kind == Piece::Kind::kExtent && next.source == before.source && next.offset >= end &&
         next.offset - end <= kMergeGap && next.offset + next.nbytes - run_begin <= kMostRunNbytes;
}

}  // namespace

std::byte* Scratch::take(std::size_t nbytes) {
  if (buffers_.empty() || buffers_.back().capacity - buffers_.back().used < nbytes) {
    constexpr std::size_t kSmallest = std::size_t{256} << 10;
    const std::size_t capacity = std::max(nbytes, kSmallest);
    buffers_.push_back({std::make_unique_for_overwrite<std::byte[]>(capacity), capacity, 0});
  }
  Buffer& buffer = buffers_.back();
  std::byte* taken = buffer.bytes.get() + buffer.used;
  buffer.used += nbytes;
  return taken;
}

void Scratch::clear() {
  if (buffers_.size() > 1 || (!buffers_.empty() && buffers_.back().capacity > kKeptNbytes)) {
    // The next read is probably like this one: one buffer that holds it all, within reason.
    std::size_t used = 0;
    for (const Buffer& buffer : buffers_) {
      used += buffer.used;
    }
    buffers_.clear();
    take(std::min(used, kKeptNbytes));
  }
  if (!buffers_.empty()) {
    buffers_.back().used = 0;
  }
}

void Gathered::clear() {
  parts_.clear();
  pinned_.clear();
  scratch_.clear();
  window_.clear();
}

void Fetcher::fetch(const Plan& plan, Gathered& out) const {
  out.clear();
  const SourceWatch watch;
  const std::vector<Piece>& pieces = plan.pieces();
  // Few pieces are handed over where they lie; many are copied into one.
  const bool copy = pieces.size() > kMostParts;
  std::byte* to = nullptr;
  if (copy) {
    const std::uint64_t nbytes = plan.nbytes();
    to = out.scratch_.take(nbytes);
    out.parts_.push_back({to, nbytes});
  }
  const auto give = [&](const std::byte* bytes, std::uint64_t nbytes) {
    if (copy) {
      std::memcpy(to, bytes, nbytes);
    } else {
      out.parts_.push_back({const_cast<std::byte*>(bytes), nbytes});
    }
  };
  for (std::size_t i = 0; i < pieces.size();) {
    const Piece& piece = pieces[i];
    std::size_t next = i + 1;
    switch (piece.kind) {
      case Piece::Kind::kDamaged:
        throw Error(*piece.error);
      case Piece::Kind::kMemory:
        give(piece.memory, piece.nbytes);
        break;
      case Piece::Kind::kFill: {
        std::byte* filled = copy ? to : out.scratch_.take(piece.nbytes);
        fill(filled, piece);
        if (!copy) {
          give(filled, piece.nbytes);
        }
        break;
      }
      case Piece::Kind::kChunk: {
        std::shared_ptr<const Block> block = cache_.get(*piece.chunks, piece.chunk);
        block->require_good({piece.offset, piece.offset + piece.nbytes});
        give(block->bytes.data() + piece.offset, piece.nbytes);
        if (!copy) {
          out.pinned_.push_back(std::move(block));
        }
        break;
      }
      case Piece::Kind::kExtent:
        next = read_run(pieces, i, to, out);
        break;
    }
    if (copy) {
      for (; i < next; ++i) {
        to += pieces[i].nbytes;
      }
    }
    i = next;
  }
  watch.check_unchanged();
}

// Reads the extents from `first` on that lie close together in one source; returns the piece behind
// them. With `copy_to` they are copied there, else handed over.
std::size_t Fetcher::read_run(const std::vector<Piece>& pieces, std::size_t first,
                              std::byte* copy_to, Gathered& out) const {
  const ByteSource& source = *pieces[first].source;
  ByteRange window{pieces[first].offset, pieces[first].offset + pieces[first].nbytes};
  std::size_t last = first + 1;
  while (last < pieces.size() && continues_run(pieces[last - 1], pieces[last], window.begin)) {
    window.end = pieces[last].offset + pieces[last].nbytes;
    ++last;
  }
  bool intact = true;
  for (std::size_t i = first; i < last; ++i) {
    const Guard& guard = pieces[i].guard;
    if (!verified_.known_intact(guard)) {
      intact = false;
      widen(window, source, guard, guard.first);
      widen(window, source, guard, guard.first + guard.count - 1);
    }
  }
  Scratch& scratch = copy_to != nullptr ? out.window_ : out.scratch_;
  if (copy_to != nullptr) {
    scratch.clear();
  }
  const std::span<std::byte> bytes(scratch.take(window.nbytes()), window.nbytes());
  source.read_at(window.begin, bytes);
  for (std::size_t i = first; i < last; ++i) {
    const Piece& piece = pieces[i];
    if (!intact) {
      verified_.require_intact(piece.guard, {&source, window.begin, bytes});
    }
    std::byte* at = bytes.data() + (piece.offset - window.begin);
    if (copy_to != nullptr) {
      std::memcpy(copy_to, at, piece.nbytes);
      copy_to += piece.nbytes;
    } else {
      out.parts_.push_back({at, piece.nbytes});
    }
  }
  return last;
}

}  // namespace npyfs
