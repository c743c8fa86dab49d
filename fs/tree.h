// SPDX-License-Identifier: Apache-2.0
//
// Names and inode numbers of everything in the mount. What is listed is a node; the files of
// records/ are numbers only, computed when asked for.

#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/arrays/dataset.h"
#include "fs/npy_file.h"
#include "fs/record_files.h"

namespace npyfs {

using Ino = std::uint64_t;

struct Node {
  enum class Kind {
    kDirectory,
    kArray,    // a .npy file over an array
    kBytes,    // a small file held in memory
    kRecords,  // a records/ directory
    kStatus,   // made at every open
  };
  Kind kind = Kind::kDirectory;
  Ino ino = 0;
  Ino parent = 0;
  std::string name;
  bool listed = true;
  std::int64_t mtime_ns = 0;
  std::vector<Ino> children;  // in listing order
  std::map<std::string, Ino, std::less<>> by_name;
  std::unique_ptr<NpyFile> npy;
  std::string bytes;
  std::unique_ptr<RecordFiles> records;
};

// What an inode number stands for: a node, or a file in the records/ of one.
struct Target {
  const Node* node = nullptr;
  bool is_record = false;
  std::uint64_t record_file = 0;
};

// Immutable once made; any thread. Numbers depend on the data set alone, so they are the same at
// every mount.
class Tree {
 public:
  static constexpr Ino kRoot = 1;

  Tree(const Dataset& dataset, std::uint64_t header_align);

  // Nothing for a number that names nothing.
  std::optional<Target> find(Ino ino) const;
  std::optional<Ino> lookup(Ino directory, std::string_view name) const;
  Ino record_ino(const Node& records, std::uint64_t file) const;

  // "train/x.npy", for messages.
  std::string path(Ino ino) const;
  const std::vector<std::unique_ptr<Node>>& nodes() const { return nodes_; }
  // Bytes of all files but records.
  std::uint64_t total_nbytes() const { return total_nbytes_; }
  std::uint64_t total_files() const { return total_files_; }

 private:
  Node& add(Node::Kind kind, Ino parent, const std::string& name, bool listed = true);
  void add_split(const Split& split, Ino parent, std::uint64_t header_align);
  void add_array(const NamedArray& array, Ino parent, std::uint64_t header_align);
  void add_attributes(Ino parent, const std::string& name, const Dict& attributes);

  std::vector<std::unique_ptr<Node>> nodes_;  // nodes_[ino - kRoot]
  std::uint64_t total_nbytes_ = 0;
  std::uint64_t total_files_ = 0;
};

// Name of the unlisted directory and of its file that lists what could not be read.
inline constexpr const char* kStatusDirectory = ".npyfs";
inline constexpr const char* kErrorsFile = "errors";

}  // namespace npyfs
