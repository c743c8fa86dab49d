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
constexpr std::uint64_t kMostWidenNbytes = std::uint64_t{1} << 20;

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
  // One period byte by byte, then what is there over and over, each time twice as much.
  std::uint64_t done = std::min<std::uint64_t>(period, piece.nbytes);
  for (std::uint64_t i = 0; i < done; ++i) {
    out[i] = piece.memory[(piece.offset + i) % period];
  }
  while (done < piece.nbytes) {
    const std::uint64_t more = std::min(done, piece.nbytes - done);
    std::memcpy(out + done, out, more);
    done += more;
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
  plan_.clear();
  parts_.clear();
  pinned_.clear();
  scratch_.clear();
  window_.clear();
}

void Fetcher::read(ByteRange range, const PlanRead& plan_read, Gathered& out) const {
  out.clear();
  const SourceWatch watch;
  Plan& plan = out.plan_;
  plan_read(range, plan);
  if (!plan.full() && plan.pieces().size() <= kMostParts) {
    hand_over(plan.pieces(), out);
  } else {
    std::byte* const begin = out.scratch_.take(range.nbytes());
    std::byte* to = begin;
    for (std::uint64_t planned = plan.nbytes(); planned > 0; planned = plan.nbytes()) {
      copy(plan.pieces(), to, out);
      to += planned;
      range.begin += planned;
      plan.clear();
      if (!range.empty()) {
        plan_read(range, plan);
      }
    }
    out.parts_.push_back({begin, static_cast<std::size_t>(to - begin)});
  }
  watch.check_unchanged();
}

// Few pieces are handed over where they lie.
void Fetcher::hand_over(const std::vector<Piece>& pieces, Gathered& out) const {
  const auto give = [&](const std::byte* bytes, std::uint64_t nbytes) {
    out.parts_.push_back({const_cast<std::byte*>(bytes), nbytes});
  };
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const Piece& piece = pieces[i];
    switch (piece.kind) {
      case Piece::Kind::kDamaged:
        throw Error(*piece.error);
      case Piece::Kind::kMemory:
        verified_.require_intact(piece.guard);
        give(piece.memory, piece.nbytes);
        break;
      case Piece::Kind::kFill: {
        std::byte* filled = out.scratch_.take(piece.nbytes);
        fill(filled, piece);
        give(filled, piece.nbytes);
        break;
      }
      case Piece::Kind::kChunk: {
        std::shared_ptr<const Block> block = cache_.get(*piece.chunks, piece.chunk);
        block->require_good({piece.offset, piece.offset + piece.nbytes});
        give(block->bytes.data() + piece.offset, piece.nbytes);
        out.pinned_.push_back(std::move(block));
        break;
      }
      case Piece::Kind::kExtent: {
        const Run run = read_run(pieces, i, out.scratch_);
        for (; i < run.end; ++i) {
          give(run.at(pieces[i]), pieces[i].nbytes);
        }
        --i;
        break;
      }
    }
  }
}

// Many pieces are copied one behind the other.
void Fetcher::copy(const std::vector<Piece>& pieces, std::byte* to, Gathered& out) const {
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const Piece& piece = pieces[i];
    switch (piece.kind) {
      case Piece::Kind::kDamaged:
        throw Error(*piece.error);
      case Piece::Kind::kMemory:
        verified_.require_intact(piece.guard);
        std::memcpy(to, piece.memory, piece.nbytes);
        to += piece.nbytes;
        break;
      case Piece::Kind::kFill:
        fill(to, piece);
        to += piece.nbytes;
        break;
      case Piece::Kind::kChunk: {
        const std::shared_ptr<const Block> block = cache_.get(*piece.chunks, piece.chunk);
        block->require_good({piece.offset, piece.offset + piece.nbytes});
        std::memcpy(to, block->bytes.data() + piece.offset, piece.nbytes);
        to += piece.nbytes;
        break;
      }
      case Piece::Kind::kExtent: {
        out.window_.clear();
        const Run run = read_run(pieces, i, out.window_);
        for (; i < run.end; ++i) {
          std::memcpy(to, run.at(pieces[i]), pieces[i].nbytes);
          to += pieces[i].nbytes;
        }
        --i;
        break;
      }
    }
  }
}

Fetcher::Run Fetcher::read_run(const std::vector<Piece>& pieces, std::size_t first,
                               Scratch& scratch) const {
  const ByteSource& source = *pieces[first].source;
  ByteRange window{pieces[first].offset, pieces[first].offset + pieces[first].nbytes};
  std::size_t end = first + 1;
  while (end < pieces.size() && continues_run(pieces[end - 1], pieces[end], window.begin)) {
    window.end = pieces[end].offset + pieces[end].nbytes;
    ++end;
  }
  bool intact = true;
  for (std::size_t i = first; i < end; ++i) {
    const Guard& guard = pieces[i].guard;
    if (!verified_.known_intact(guard)) {
      intact = false;
      widen(window, source, guard, guard.first);
      widen(window, source, guard, guard.first + guard.count - 1);
    }
  }
  const std::span<std::byte> bytes(scratch.take(window.nbytes()), window.nbytes());
  source.read_at(window.begin, bytes);
  for (std::size_t i = first; !intact && i < end; ++i) {
    verified_.require_intact(pieces[i].guard, {&source, window.begin, bytes});
  }
  return {end, bytes.data(), window.begin};
}

}  // namespace npyfs
