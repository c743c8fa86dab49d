// SPDX-License-Identifier: Apache-2.0

#include "kept/fill_array.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "formats/bytes/block_memory.h"
#include "formats/bytes/error.h"

namespace npyfs {

namespace {

// Blocks that are synced together: few syncs, and little to do again after a kill.
constexpr std::size_t kMostInBatch = 16;
// Another process that writes at the same time is waited for so many times.
constexpr int kMostTries = 50;

// Blocks that were read and are not written yet.
struct Batch {
  std::vector<Buffer> buffers;
  std::vector<KeptArray::BlockBytes> blocks;

  bool write_to(KeptArray& array, KeptArray::Outcome& outcome) {
    outcome = KeptArray::Outcome::kBusy;
    for (int tries = 0; tries < kMostTries && outcome == KeptArray::Outcome::kBusy; ++tries) {
      outcome = array.write_blocks(blocks);
    }
    buffers.clear();
    blocks.clear();
    return outcome == KeptArray::Outcome::kKept;
  }
};

bool try_read(const ReadArrayFile& read, std::uint64_t offset, std::span<std::byte> out) {
  try {
    return read(offset, out);
  } catch (const Error&) {
    return false;
  }
}

FillEnd end_of(KeptArray::Outcome outcome) {
  switch (outcome) {
    case KeptArray::Outcome::kNoRoom:
      return FillEnd::kNoRoom;
    case KeptArray::Outcome::kDropped:
      return FillEnd::kDropped;
    default:
      return FillEnd::kFailed;
  }
}

}  // namespace

FillEnd fill_array(KeptArray& array, const ReadArrayFile& read, const FillProgress& progress) {
  Batch batch;
  KeptArray::Outcome outcome = KeptArray::Outcome::kKept;
  if (array.needs_check() && !array.check()) {
    return FillEnd::kDropped;
  }
  std::optional<std::uint64_t> block = array.next_missing(0);
  for (; block; block = array.next_missing(*block + 1)) {
    if (!progress(*block, array.block_count())) {
      return FillEnd::kStopped;
    }
    Buffer buffer(array.block_nbytes(*block));
    if (!try_read(read, *block * kKeptBlockNbytes, buffer.bytes())) {
      continue;
    }
    batch.buffers.push_back(std::move(buffer));
    batch.blocks.push_back({*block, batch.buffers.back().bytes()});
    if (batch.blocks.size() == kMostInBatch && !batch.write_to(array, outcome)) {
      return end_of(outcome);
    }
  }
  // Without any block, too: another one may have written the last of them, and died before it
  // completed the array.
  if (!batch.write_to(array, outcome)) {
    return end_of(outcome);
  }
  progress(array.block_count(), array.block_count());
  return array.is_complete() ? FillEnd::kComplete : FillEnd::kDamaged;
}

}  // namespace npyfs
