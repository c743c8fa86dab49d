// SPDX-License-Identifier: Apache-2.0
//
// What a file holds, as the child tells it: names, types, attributes, and how each array is stored;
// checked as far as that goes without the file.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "formats/bytes/dtype.h"
#include "formats/bytes/value.h"
#include "formats/hdf5/wire.h"

namespace npyfs {

struct FilterDescription {
  std::uint32_t id = 0;
  std::string name;
  std::vector<std::uint32_t> parameters;
};

// Nothing was ever written: the fill value everywhere.
struct AbsentStorage {};
// The elements one after another, at an offset of the file (a user block before it included).
struct ContiguousStorage {
  std::uint64_t offset = 0;
};
// The elements themselves.
struct CompactStorage {
  std::string bytes;
};
struct ChunkedStorage {
  Shape chunk_shape;              // of elements of the array that is shown
  std::size_t extra_axes = 0;     // the last of these, which are not the data set's but its type's
  bool edges_unfiltered = false;  // chunks that hang over the end of the array
  std::uint64_t base = 0;         // what all addresses in the file count from
  std::uint64_t header = 0;       // address of the object header
  std::vector<FilterDescription> filters;  // in the order of encoding
};
// The child must read it, in blocks of this shape.
struct ReadStorage {
  ReadForm form = ReadForm::kPlain;
  std::uint32_t characters = 0;         // of kText
  Shape block_shape;                    // of kConcat: of the offsets
  std::vector<std::uint64_t> row_ends;  // of kConcat: where each sequence ends
};
// Pieces of other files, one after another.
struct ExternalStorage {
  struct Piece {
    std::string file;
    std::uint64_t offset = 0;
    std::uint64_t nbytes = 0;
  };
  std::vector<Piece> pieces;
};
// Boxes of other arrays.
struct VirtualStorage {
  // Along one axis: `count` blocks of `block`, `stride` apart.
  struct Steps {
    std::uint64_t start = 0;
    std::uint64_t stride = 1;
    std::uint64_t count = 0;
    std::uint64_t block = 1;
  };
  using Selection = std::vector<Steps>;
  static Selection whole(const Shape& shape) {
    Selection all;
    for (const std::uint64_t length : shape) {
      all.push_back({0, 1, length, 1});
    }
    return all;
  }
  struct Mapping {
    std::string file;  // "." is the file itself
    std::string path;
    Selection here;
    std::optional<Selection> there;  // nothing: all of it
  };
  std::vector<Mapping> mappings;
};

struct ArrayDescription {
  std::string name;
  std::string path;
  DType dtype;
  Shape shape;
  std::vector<std::byte> fill_value;  // one element, or nothing for zeroes
  Dict attributes;
  std::variant<AbsentStorage, ContiguousStorage, CompactStorage, ChunkedStorage, ReadStorage,
               ExternalStorage, VirtualStorage>
      storage;
};

struct ExternalLinkDescription {
  std::string name;
  std::string file;
  std::string path;
};

struct GroupDescription {
  std::string name;
  Dict attributes;
  std::vector<ArrayDescription> arrays;
  std::vector<ExternalLinkDescription> links;
  std::vector<GroupDescription> groups;
};

// What a file and all that it links to may take. Many answers, each within its limits, would
// otherwise fill the memory of whoever mounts a small crafted file.
struct DescriptionBudget {
  // Objects, and lines about them: a million take about 1 GiB.
  static constexpr std::size_t kMostObjects = 1'000'000;
  // In memory, of what is told of them: attributes, where sequences end, compact data.
  static constexpr std::uint64_t kMostNbytes = std::uint64_t{1} << 30;

  std::size_t objects = 0;
  std::uint64_t nbytes = 0;
};

// Takes the frames that answer kDescribe, one by one.
class DescriptionReader {
 public:
  // `name` is the file's; both outlive this. The budget is charged.
  DescriptionReader(const std::string& name, DescriptionBudget& budget)
      : name_(name), budget_(budget) {
    open_.emplace_back();
  }

  // Whether the answer is complete. Throws kCorrupt for what makes no sense, or is kFailure,
  // kTooLarge beyond the budget.
  bool add(const WireFrame& frame);

  // The object that was asked for: the only thing in this group.
  GroupDescription take() { return std::move(open_.front()); }
  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  bool take(const WireFrame& frame, WireFrameReader& fields);
  void add_array(WireFrameReader& fields);
  void charge(std::size_t objects, std::uint64_t nbytes);

  const std::string& name_;
  DescriptionBudget& budget_;
  std::vector<GroupDescription> open_;  // each within the one before
  std::vector<std::string> warnings_;
};

// One chunk as its index has it.
struct ChunkEntry {
  Shape offset;  // of its first element, along the data set's own axes
  std::uint64_t address = 0;
  std::uint64_t nbytes = 0;
  std::uint32_t filter_mask = 0;
};

// Fields of the kData frames that answer kChunks, for a data set of `rank`.
std::vector<ChunkEntry> read_chunk_entries(std::span<const std::byte> bytes, std::size_t rank,
                                           const std::string& name);

inline constexpr std::size_t kMostGroupDepth = 128;

}  // namespace npyfs
