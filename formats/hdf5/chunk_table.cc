// SPDX-License-Identifier: Apache-2.0

#include "formats/hdf5/chunk_table.h"

#include <algorithm>

namespace npyfs {

void ChunkTable::add(std::uint64_t chunk, const StoredChunk& stored) {
  chunks_.push_back({chunk, stored});
}

bool ChunkTable::sort() {
  const auto by_number = [](const Row& a, const Row& b) { return a.number < b.number; };
  if (!std::is_sorted(chunks_.begin(), chunks_.end(), by_number)) {
    std::sort(chunks_.begin(), chunks_.end(), by_number);
  }
  chunks_.shrink_to_fit();
  dense_ = !chunks_.empty() && chunks_.back().number == chunks_.size() - 1;
  return std::adjacent_find(chunks_.begin(), chunks_.end(), [](const Row& a, const Row& b) {
           return a.number == b.number;
         }) == chunks_.end();
}

std::optional<StoredChunk> ChunkTable::find(std::uint64_t chunk) const {
  if (dense_) {
    return chunk < chunks_.size() ? std::optional(chunks_[chunk].stored) : std::nullopt;
  }
  const auto found =
      std::lower_bound(chunks_.begin(), chunks_.end(), chunk,
                       [](const Row& row, std::uint64_t number) { return row.number < number; });
  return found != chunks_.end() && found->number == chunk ? std::optional(found->stored)
                                                          : std::nullopt;
}

}  // namespace npyfs
