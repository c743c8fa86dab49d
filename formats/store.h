// SPDX-License-Identifier: Apache-2.0
//
// What a format opens that holds arrays already: a tree of groups, arrays and attributes, under the
// names they have in the store. Everything here is immutable once opened.

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "formats/bytes/byte_source.h"
#include "formats/bytes/npy_header.h"
#include "formats/bytes/value.h"
#include "formats/chunk_grid.h"

namespace npyfs {

// A whole .npy file, in a file of its own or inside another; shown byte for byte.
struct StoredNpy {
  SourcePtr source;
  std::uint64_t offset = 0;  // where its preamble begins
  NpyHeader header;
  // Who can verify its bytes, and the record of it that they are; null: nobody.
  std::shared_ptr<const Checksums> guarded_by;
  std::uint64_t record = 0;
  std::string storage = "mapped";  // for users, as ChunkGrid::storage()

  Guard guard() const { return {guarded_by.get(), record, guarded_by != nullptr ? 1U : 0U}; }
  // Whether it is all of a local file, so that who reads that file reads what is shown, and nothing
  // of it has to be verified.
  bool is_file() const {
    return offset == 0 && guarded_by == nullptr && source->is_file() &&
           source->nbytes() == header.nbytes + data_nbytes();
  }
  std::uint64_t data_offset() const { return offset + header.nbytes; }
  std::uint64_t data_nbytes() const { return *element_count(header.shape) * header.dtype.itemsize; }
};

// Reads and checks the preamble of a .npy file that takes the `nbytes` bytes of `source` from
// `offset` on. Throws kCorrupt for a damaged preamble and where the data is not all there,
// kUnsupported for arrays of Python objects; the text names the source and the byte.
StoredNpy read_stored_npy(SourcePtr source, std::uint64_t offset, std::uint64_t nbytes);

using ArrayPart = std::variant<std::shared_ptr<const ChunkGrid>, StoredNpy>;

struct StoredArray {
  // As the store calls it; whoever shows it escapes it. Empty for a store that is this one array:
  // it is shown as `x`, and its attributes are the root's.
  std::string name;
  // One after another along axis 0; nearly always one. Of one dtype, and of one shape but for axis
  // 0.
  std::vector<ArrayPart> parts;
  Dict attributes;
  // What it comes from: their newest mtime and their changes are the array's.
  std::vector<SourcePtr> sources;
};

struct Group {
  std::string name;
  Dict attributes;
  std::vector<StoredArray> arrays;
  std::vector<Group> groups;
};

struct Store {
  Group root;
  // Files of the store that belong to no array: metadata, attributes.
  std::vector<SourcePtr> sources;
};

using StorePtr = std::shared_ptr<const Store>;

}  // namespace npyfs
