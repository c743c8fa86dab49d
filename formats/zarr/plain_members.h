// SPDX-License-Identifier: Apache-2.0
//
// Where the plain chunks of an array lie that are members of an archive.

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "formats/chunk_grid.h"
#include "formats/zarr/array_values.h"

namespace npyfs {

// Found once, when the array is opened: 32 bytes a chunk. Immutable; any thread. Points into the
// store that `values` keeps.
class PlainMembers {
 public:
  // Nothing of an array whose chunks are files. Throws kTooLarge where chunks would have to be
  // inflated that are larger than npyfs decodes.
  static std::optional<PlainMembers> find(const ArrayValues& values);

  // As ChunkGrid::locate. A deflated member is kDecoded, a damaged one is damaged alone.
  ChunkPlace locate(std::uint64_t chunk) const;

  // As ChunkGrid::storage; `chunks` is what they are called.
  std::string storage(const std::string& chunks) const;

 private:
  struct Member {
    std::uint64_t chunk = 0;
    std::uint64_t offset = 0;
    std::uint64_t record = 0;
    ChunkPlace::Kind kind = ChunkPlace::Kind::kDecoded;
  };

  void add(const ArrayValues& values, std::uint64_t chunk);

  std::vector<Member> members_;  // by chunk
  std::map<std::uint64_t, Damage> damage_;
  std::uint64_t deflated_ = 0;
  std::uint64_t chunk_nbytes_ = 0;
  const ByteSource* archive_ = nullptr;
  const Checksums* checksums_ = nullptr;
};

}  // namespace npyfs
