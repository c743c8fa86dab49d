// SPDX-License-Identifier: Apache-2.0

#include "fs/fetch.h"

#include <algorithm>
#include <cstring>
#include <new>

namespace npyfs {

namespace {

constexpr std::size_t kPageNbytes = 4096;
// A record up to this size is read whole with the part that was asked for, to be verified in the
// same buffer; a larger one is verified on its own first.
constexpr std::uint64_t kMostWidenNbytes = std::uint64_t{1} << 20;

// Widens `window` to the whole of an unverified record at its edge, with the checksum behind it.
void widen(ByteRange& window, const ByteSource& source, const Guard& guard, std::uint64_t record) {
  const auto checksum = guard.checksums->checksum(record);
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

bool is_same_chunk(const Piece& a, const Piece& b) {
  return a.chunks == b.chunks && a.chunk == b.chunk;
}

bool by_chunk(const Piece& a, const Piece& b) {
  return a.chunks != b.chunks ? std::less<>()(a.chunks, b.chunks) : a.chunk < b.chunk;
}

// Whether `next` is worth reading together with `before`, in a run from `run_begin` on.
bool continues_run(const Piece& before, const Piece& next, std::uint64_t run_begin,
                   const ReadCost& cost) {
  const std::uint64_t end = before.offset + before.nbytes;
  return next.kind == Piece::Kind::kExtent && next.source == before.source && next.offset >= end &&
         next.offset - end <= cost.gap_nbytes() &&
         next.offset + next.nbytes - run_begin <= cost.most_nbytes();
}

}  // namespace

void Scratch::reserve(std::size_t nbytes) {
  if (!buffers_.empty() && buffers_.back().capacity - buffers_.back().used >= nbytes) {
    return;
  }
  constexpr std::size_t kSmallest = std::size_t{256} << 10;
  const std::size_t capacity = (std::max(nbytes, kSmallest) + kPageNbytes - 1) & ~(kPageNbytes - 1);
  auto* bytes = static_cast<std::byte*>(std::aligned_alloc(kPageNbytes, capacity));
  if (bytes == nullptr) {
    throw std::bad_alloc();
  }
  buffers_.push_back({std::unique_ptr<std::byte[], Free>(bytes), capacity, 0});
}

std::byte* Scratch::take(std::size_t nbytes) {
  reserve(nbytes);
  Buffer& buffer = buffers_.back();
  std::byte* taken = buffer.bytes.get() + buffer.used;
  buffer.used += nbytes;
  return taken;
}

void Scratch::clear() noexcept {
  if (buffers_.size() > 1 || (!buffers_.empty() && buffers_.back().capacity > kKeptNbytes)) {
    // The next read is probably like this one: one buffer that holds it all, within reason.
    std::size_t used = 0;
    for (const Buffer& buffer : buffers_) {
      used += buffer.used;
    }
    buffers_.clear();
    try {
      reserve(std::min(used, kKeptNbytes));
    } catch (const std::bad_alloc&) {
      // The next read asks for it.
    }
  }
  if (!buffers_.empty()) {
    buffers_.back().used = 0;
  }
}

Scratch::Mark Scratch::mark() const {
  return buffers_.empty() ? Mark() : Mark{buffers_.size(), buffers_.back().used};
}

void Scratch::return_to(const Mark& mark) {
  if (buffers_.size() > mark.buffers) {
    // The last one had room for what the others had not.
    Buffer last = std::move(buffers_.back());
    buffers_.resize(mark.buffers);
    if (!buffers_.empty() && mark.used == 0) {
      buffers_.pop_back();
    }
    buffers_.push_back(std::move(last));
    buffers_.back().used = 0;
  } else if (!buffers_.empty()) {
    buffers_.back().used = mark.used;
  }
}

std::size_t Scratch::held_nbytes() const {
  std::size_t nbytes = 0;
  for (const Buffer& buffer : buffers_) {
    nbytes += buffer.capacity;
  }
  return nbytes;
}

void Gathered::clear() noexcept {
  plan_.clear();
  parts_.clear();
  chunk_uses_.clear();
  pinned_.clear();
  scratch_.clear();
  window_.clear();
}

std::size_t Gathered::held_nbytes() const {
  std::size_t nbytes = scratch_.held_nbytes() + window_.held_nbytes();
  for (const auto& block : pinned_) {
    nbytes += block->bytes.size();
  }
  return nbytes;
}

bool Gathered::give(const std::byte* bytes, std::size_t nbytes) {
  // Handing over costs the kernel a lookup for each page touched, and one more where it does not
  // begin a page: what is smaller is copied together.
  constexpr std::size_t kLeastNbytes = 16 << 10;
  if (nbytes < kLeastNbytes || parts_.size() + 2 >= Fetcher::kMostParts) {
    std::memcpy(add(nbytes), bytes, nbytes);
    return false;
  }
  parts_.push_back({const_cast<std::byte*>(bytes), nbytes});
  return true;
}

std::byte* Gathered::add(std::size_t nbytes) {
  std::byte* bytes = scratch_.take(nbytes);
  if (!parts_.empty() &&
      static_cast<std::byte*>(parts_.back().iov_base) + parts_.back().iov_len == bytes) {
    parts_.back().iov_len += nbytes;
  } else {
    parts_.push_back({bytes, nbytes});
  }
  return bytes;
}

void Fetcher::read(ByteRange range, const PlanRead& plan_read, Gathered& out) const {
  out.clear();
  try {
    read_all(range, plan_read, out);
  } catch (...) {
    // Whoever failed may not read again for long.
    out.clear();
    throw;
  }
}

void Fetcher::read_all(ByteRange range, const PlanRead& plan_read, Gathered& out) const {
  out.scratch_.reserve(range.nbytes());
  const SourceWatch watch;
  Plan& plan = out.plan_;
  bool more = !range.empty();
  while (more) {
    plan.clear();
    plan_read(range, plan);
    append(plan.pieces(), out);
    range.begin += plan.nbytes();
    more = plan.full() && !range.empty();
  }
  watch.check_unchanged();
}

void Fetcher::append(const std::vector<Piece>& pieces, Gathered& out) const {
  for (std::size_t i = 0; i < pieces.size();) {
    const Piece& piece = pieces[i];
    switch (piece.kind) {
      case Piece::Kind::kDamaged:
        throw Error(*piece.error);
      case Piece::Kind::kMemory:
        verified_.require_intact(piece.guard);
        out.give(piece.memory, piece.nbytes);
        ++i;
        break;
      case Piece::Kind::kFill:
        fill_piece(piece, out.add(piece.nbytes));
        ++i;
        break;
      case Piece::Kind::kChunk:
        i = append_chunks(pieces, i, out);
        break;
      case Piece::Kind::kExtent: {
        const std::size_t behind = read_in_place(pieces, i, out);
        i = behind > i ? behind : append_run(pieces, i, out);
        break;
      }
    }
  }
}

std::size_t Fetcher::append_chunks(const std::vector<Piece>& pieces, std::size_t first,
                                   Gathered& out) const {
  std::size_t end = first;
  while (end < pieces.size() && pieces[end].kind == Piece::Kind::kChunk) {
    ++end;
  }
  std::shared_ptr<const Block> block;
  const Piece* of = nullptr;  // whose chunk `block` is
  const auto good_bytes = [&](const Piece& piece) {
    if (of == nullptr || !is_same_chunk(*of, piece)) {
      block = cache_.get(*piece.chunks, piece.chunk);
      of = &piece;
      out.chunk_uses_.push_back({piece.chunks, piece.chunk, 0});
    }
    out.chunk_uses_.back().nbytes += piece.nbytes;
    return block->good_bytes({piece.offset, piece.offset + piece.nbytes});
  };
  if (std::is_sorted(pieces.begin() + static_cast<std::ptrdiff_t>(first),
                     pieces.begin() + static_cast<std::ptrdiff_t>(end), by_chunk)) {
    for (std::size_t i = first; i < end; ++i) {
      if (out.give(good_bytes(pieces[i]), pieces[i].nbytes)) {
        out.pinned_.push_back(block);
      }
    }
    return end;
  }
  // Rows that cross several chunks come back to each of them, which the cache need not have room
  // for: chunk by chunk instead, each piece to its place.
  out.slots_.clear();
  for (std::size_t i = first; i < end; ++i) {
    out.slots_.push_back({&pieces[i], out.add(pieces[i].nbytes)});
  }
  std::stable_sort(out.slots_.begin(), out.slots_.end(),
                   [](const auto& a, const auto& b) { return by_chunk(*a.piece, *b.piece); });
  for (const auto& [piece, to] : out.slots_) {
    std::memcpy(to, good_bytes(*piece), piece->nbytes);
  }
  return end;
}

std::size_t Fetcher::read_in_place(const std::vector<Piece>& pieces, std::size_t first,
                                   Gathered& out) const {
  std::vector<WantedRange>& wanted = out.wanted_;
  wanted.clear();
  std::size_t end = first;
  while (end < pieces.size() && pieces[end].kind == Piece::Kind::kExtent &&
         pieces[end].source == pieces[first].source && verified_.known_intact(pieces[end].guard)) {
    const Piece& piece = pieces[end];
    wanted.push_back({piece.offset, {out.add(piece.nbytes), piece.nbytes}});
    ++end;
  }
  if (end > first) {
    pieces[first].source->read_ranges(wanted);
  }
  return end;
}

std::size_t Fetcher::append_run(const std::vector<Piece>& pieces, std::size_t first,
                                Gathered& out) const {
  const Scratch::Mark mark = out.window_.mark();
  const Run run = read_run(pieces, first, out.window_);
  std::uint64_t wanted = 0;
  for (std::size_t i = first; i < run.end; ++i) {
    wanted += pieces[i].nbytes;
  }
  // A window stays as long as the answer where a part of it is handed over as it lies, so that must
  // be the better part of it: one read may touch thousands of records.
  const bool may_stay = wanted >= run.bytes.size() / 2;
  bool stays = false;
  for (std::size_t i = first; i < run.end; ++i) {
    const Piece& piece = pieces[i];
    if (may_stay) {
      stays = out.give(run.at(piece), piece.nbytes) || stays;
    } else {
      std::memcpy(out.add(piece.nbytes), run.at(piece), piece.nbytes);
    }
  }
  if (!stays) {
    out.window_.return_to(mark);
  }
  return run.end;
}

Fetcher::Run Fetcher::read_run(const std::vector<Piece>& pieces, std::size_t first,
                               Scratch& scratch) const {
  const ByteSource& source = *pieces[first].source;
  const ReadCost cost = source.cost();
  ByteRange window{pieces[first].offset, pieces[first].offset + pieces[first].nbytes};
  std::size_t end = first + 1;
  while (end < pieces.size() && continues_run(pieces[end - 1], pieces[end], window.begin, cost)) {
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
  return {end, bytes, window.begin};
}

}  // namespace npyfs
