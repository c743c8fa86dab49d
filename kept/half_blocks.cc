// SPDX-License-Identifier: Apache-2.0

#include "kept/half_blocks.h"

#include <algorithm>
#include <cstring>

namespace npyfs {

std::optional<FullBlock> HalfBlocks::add(const std::shared_ptr<KeptArray>& array,
                                         std::uint64_t block, std::uint64_t offset,
                                         std::span<const std::byte> bytes) {
  Halves::iterator half;
  std::vector<Range> wanted;
  {
    const MutexLock lock(mutex_);
    half = find_or_begin(array, block);
    if (half == halves_.end()) {
      return std::nullopt;
    }
    wanted = claim(*half, {offset, offset + bytes.size()});
    ++half->copying;
  }
  std::uint64_t copied = 0;
  for (const Range& range : wanted) {
    std::memcpy(half->full.bytes.bytes().data() + range.begin,
                bytes.data() + (range.begin - offset), range.end - range.begin);
    copied += range.end - range.begin;
  }
  const MutexLock lock(mutex_);
  half->copied_nbytes += copied;
  --half->copying;
  const std::uint64_t nbytes = half->full.bytes.bytes().size();
  if (half->copied_nbytes < nbytes || half->copying > 0) {
    return std::nullopt;
  }
  std::optional<FullBlock> full(std::move(half->full));
  held_nbytes_ -= nbytes;
  by_key_.erase({array.get(), block});
  halves_.erase(half);
  return full;
}

HalfBlocks::Halves::iterator HalfBlocks::find_or_begin(const std::shared_ptr<KeptArray>& array,
                                                       std::uint64_t block) {
  const auto found = by_key_.find({array.get(), block});
  if (found != by_key_.end()) {
    return found->second;
  }
  const std::uint64_t nbytes = array->block_nbytes(block);
  while (held_nbytes_ + nbytes > most_nbytes_) {
    if (!drop_oldest()) {
      ++dropped_;
      return halves_.end();
    }
  }
  Half half{{array, block, Buffer(nbytes)}, {}, 0, 0};
  // What the file begins with is known without any reader.
  const std::uint64_t begin = block * kKeptBlockNbytes;
  if (begin < array->head().size()) {
    const auto known = array->head().subspan(begin);
    const std::uint64_t known_nbytes = std::min<std::uint64_t>(known.size(), nbytes);
    std::memcpy(half.full.bytes.bytes().data(), known.data(), known_nbytes);
    half.claimed.push_back({0, known_nbytes});
    half.copied_nbytes = known_nbytes;
  }
  const auto at = halves_.insert(halves_.end(), std::move(half));
  by_key_.emplace(Key{array.get(), block}, at);
  held_nbytes_ += nbytes;
  return at;
}

bool HalfBlocks::drop_oldest() {
  const auto oldest = std::find_if(halves_.begin(), halves_.end(),
                                   [](const Half& half) { return half.copying == 0; });
  if (oldest == halves_.end()) {
    return false;
  }
  drop(oldest);
  return true;
}

void HalfBlocks::drop(Halves::iterator half) {
  held_nbytes_ -= half->full.bytes.bytes().size();
  by_key_.erase({half->full.array.get(), half->full.block});
  halves_.erase(half);
  ++dropped_;
}

void HalfBlocks::forget(const KeptArray& array) {
  const MutexLock lock(mutex_);
  for (auto half = halves_.begin(); half != halves_.end();) {
    const auto next = std::next(half);
    if (half->full.array.get() == &array && half->copying == 0) {
      drop(half);
    }
    half = next;
  }
}

// Those parts of `range` that nobody has claimed yet; from now on they are claimed.
std::vector<HalfBlocks::Range> HalfBlocks::claim(Half& half, Range range) {
  std::vector<Range> wanted;
  std::vector<Range> merged;
  Range whole = range;
  std::uint64_t at = range.begin;
  for (const Range& old : half.claimed) {
    if (old.end < range.begin || old.begin > range.end) {
      merged.push_back(old);
      continue;
    }
    if (at < old.begin) {
      wanted.push_back({at, old.begin});
    }
    at = std::max(at, old.end);
    whole = {std::min(whole.begin, old.begin), std::max(whole.end, old.end)};
  }
  if (at < range.end) {
    wanted.push_back({at, range.end});
  }
  const auto behind = std::find_if(merged.begin(), merged.end(),
                                   [&](const Range& old) { return old.begin > whole.begin; });
  merged.insert(behind, whole);
  half.claimed = std::move(merged);
  return wanted;
}

std::uint64_t HalfBlocks::dropped() const {
  const MutexLock lock(mutex_);
  return dropped_;
}

}  // namespace npyfs
