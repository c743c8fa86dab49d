// SPDX-License-Identifier: Apache-2.0
//
// Where the chunks of one array lie, in memory: 24 bytes for each that there is.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace npyfs {

struct StoredChunk {
  std::uint64_t address = 0;  // in the file
  std::uint32_t nbytes = 0;
  std::uint32_t filter_mask = 0;  // bit k: the k-th filter was not applied
};

// Filled once, then immutable.
class ChunkTable {
 public:
  void add(std::uint64_t chunk, const StoredChunk& stored);
  // To be called when all are added. False where two are of one number.
  [[nodiscard]] bool sort();

  std::size_t size() const { return chunks_.size(); }
  std::uint64_t number(std::size_t i) const { return chunks_[i].number; }
  const StoredChunk& at(std::size_t i) const { return chunks_[i].stored; }
  // Nothing for a chunk that is not there.
  std::optional<StoredChunk> find(std::uint64_t chunk) const;

 private:
  struct Row {
    std::uint64_t number = 0;
    StoredChunk stored;
  };
  std::vector<Row> chunks_;
  bool dense_ = false;  // the i-th row is that of chunk i
};

}  // namespace npyfs
