// SPDX-License-Identifier: Apache-2.0
//
// Names and inode numbers of everything in the mount. What is listed is a node; the files of
// records/ are numbers only, computed when asked for.

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/arrays/dataset.h"
#include "fs/file.h"
#include "fs/record_files.h"

namespace npyfs {

struct Node {
  Ino ino = 0;
  Ino parent = 0;
  std::string name;
  std::int64_t mtime_ns = 0;
  // One of the two; the other is null.
  std::shared_ptr<const File> file;
  std::unique_ptr<const Directory> directory;
};

// What an inode number stands for: a node, or a file in the records/ of one. Refers to the tree.
class Entry {
 public:
  explicit Entry(const Node& node) : ino_(node.ino), node_(&node) {}
  Entry(Ino ino, const Node& directory, const RecordFile& record)
      : ino_(ino), node_(&directory), record_(record) {}

  Ino ino() const { return ino_; }
  Ino parent() const { return record_ ? node_->ino : node_->parent; }
  // Empty for the file of a record.
  std::string name() const { return record_ ? std::string() : node_->name; }
  std::int64_t mtime_ns() const { return node_->mtime_ns; }
  // Null: a directory.
  const File* file() const { return record_ ? &*record_ : node_->file.get(); }
  // Null: a file.
  const Directory* directory() const { return record_ ? nullptr : node_->directory.get(); }

 private:
  Ino ino_;
  const Node* node_;
  std::optional<RecordFile> record_;
};

// Files that the same sources feed, by their numbers.
struct FedFiles {
  Ino first = 0;
  std::uint64_t count = 0;
  const std::vector<SourcePtr>& sources;
};

// The top directory of a view's tree: its number, and its name in the mount's top directory.
struct ViewRoot {
  Ino ino = 0;
  std::string name;
};

// Names of files in .npyfs/, and what each says when it is opened; any thread.
using StatusTexts = std::map<std::string, std::function<std::string()>>;

// Immutable once made; any thread. Numbers depend on the data set alone, so they are the same at
// every mount.
class Tree {
 public:
  static constexpr Ino kRoot = 1;
  // Its numbers are its root's and less than this many behind it.
  static constexpr Ino kNumbers = Ino{1} << 46;

  // Throws kTooLarge for more than kNumbers files.
  Tree(const Dataset& dataset, std::uint64_t header_align, const StatusTexts& status = {});
  // Has no status.
  Tree(const Dataset& dataset, std::uint64_t header_align, const ViewRoot& root);

  // Its top directory.
  Ino root() const { return root_; }

  // Nothing for a number that is not in use.
  std::optional<Entry> find(Ino ino) const;
  std::optional<Ino> lookup(Ino directory, std::string_view name) const;

  // "train/x.npy", for messages.
  std::string path(Ino ino) const;
  // Calls `visit` for all files that have sources.
  void for_each_fed(const std::function<void(const FedFiles&)>& visit) const;
  // The serials of its files' own chunks, see File::own_chunks().
  std::vector<std::uint64_t> own_chunks() const;
  // Bytes of all files but records.
  std::uint64_t total_nbytes() const { return total_nbytes_; }
  std::uint64_t total_files() const { return total_files_; }

 private:
  class NamedDirectory;
  class RecordDirectory;
  // A directory that is being filled.
  struct Parent {
    Ino ino;
    NamedDirectory& entries;
  };
  // A records/ directory: its files have the numbers from `first` on.
  struct Records {
    Ino directory;
    Ino first;
    std::shared_ptr<const RecordFiles> files;
  };

  Node& add_node(const Parent& parent, const std::string& name, bool listed = true);
  Parent add_directory(const Parent& parent, const std::string& name, bool listed = true);
  Parent add_root(const std::string& name);
  static Parent fill(Node& node);
  void add_contents(const Dataset& dataset, std::uint64_t header_align, const Parent& top);
  // These two return the mtime of what they have added.
  std::int64_t add_split(const Split& split, std::uint64_t header_align, const Parent& parent);
  std::int64_t add_array(const NamedArray& array, std::uint64_t header_align, const Parent& parent);
  void add_attributes(const Dict& attributes, const std::string& name, const Parent& parent);
  void add_records(const std::shared_ptr<const RecordTable>& table, const Parent& parent);
  void finish();

  Node& node(Ino ino) const { return *nodes_[ino - root_]; }
  const Records* find_records(Ino ino) const;

  Ino root_ = kRoot;
  std::vector<std::unique_ptr<Node>> nodes_;  // nodes_[ino - root_]
  std::vector<Records> records_;              // by `first`
  std::uint64_t total_nbytes_ = 0;
  std::uint64_t total_files_ = 0;
};

// Name of the unlisted directory of status files, and of those: what could not be read, and the
// mount's figures as JSON and for Prometheus.
inline constexpr const char* kStatusDirectory = ".npyfs";
inline constexpr const char* kErrorsFile = "errors";
inline constexpr const char* kStatsFile = "stats";
inline constexpr const char* kMetricsFile = "metrics";

}  // namespace npyfs
