// SPDX-License-Identifier: Apache-2.0

#include "fs/tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "formats/bytes/error.h"
#include "formats/bytes/value.h"
#include "fs/npy_file.h"
#include "fs/text_files.h"

namespace npyfs {

namespace {

// Nodes have the numbers before it, counted from the root's; each takes memory, so there are fewer.
constexpr Ino kFirstRecord = Ino{1} << 32;

}  // namespace

// Entries that are nodes.
class Tree::NamedDirectory : public Directory {
 public:
  void add(const std::string& name, Ino ino, bool listed) {
    by_name_.emplace(name, ino);
    if (listed) {
      listed_.emplace_back(name, ino);
    }
  }
  void count_directory() { ++directories_; }

  std::optional<Ino> find(std::string_view name) const override {
    const auto found = by_name_.find(name);
    return found != by_name_.end() ? std::optional(found->second) : std::nullopt;
  }
  void list(std::uint64_t first, const Visit& visit) const override {
    for (std::uint64_t place = first; place < listed_.size(); ++place) {
      if (!visit(place, listed_[place].first, listed_[place].second)) {
        return;
      }
    }
  }
  std::uint64_t count_directories() const override { return directories_; }

 private:
  std::map<std::string, Ino, std::less<>> by_name_;
  std::vector<std::pair<std::string, Ino>> listed_;
  std::uint64_t directories_ = 0;
};

// Entries that are files of records, numbered from `first` on.
class Tree::RecordDirectory : public Directory {
 public:
  RecordDirectory(std::shared_ptr<const RecordFiles> files, Ino first)
      : files_(std::move(files)), first_(first) {}

  std::optional<Ino> find(std::string_view name) const override {
    const auto file = files_->find(name);
    return file ? std::optional(first_ + *file) : std::nullopt;
  }
  void list(std::uint64_t first, const Visit& visit) const override {
    for (std::uint64_t file = first; file < files_->count(); ++file) {
      if (files_->exists(file) && !visit(file, files_->name(file), first_ + file)) {
        return;
      }
    }
  }
  std::uint64_t count_directories() const override { return 0; }

 private:
  std::shared_ptr<const RecordFiles> files_;
  Ino first_;
};

Tree::Tree(const Dataset& dataset, std::uint64_t header_align, const StatusTexts& status) {
  const Parent top = add_root("");
  add_contents(dataset, header_align, top);
  const Parent directory = add_directory(top, kStatusDirectory, false);
  for (const auto& [name, say] : status) {
    add_node(directory, name).file = std::make_shared<StatusFile>(say);
  }
  finish();
}

Tree::Tree(const Dataset& dataset, std::uint64_t header_align, const ViewRoot& root)
    : root_(root.ino) {
  add_contents(dataset, header_align, add_root(root.name));
  finish();
}

void Tree::add_contents(const Dataset& dataset, std::uint64_t header_align, const Parent& top) {
  add_node(top, "attrs.npy").file =
      std::make_shared<AttributesFile>(print_attrs_npy(dataset.attributes));
  add_node(top, "attrs.json").file =
      std::make_shared<AttributesFile>(print_json(Value{dataset.attributes}));
  for (const NamedArray& array : dataset.arrays) {
    add_array(array, header_align, top);
  }
  for (const Split& split : dataset.splits) {
    add_split(split, header_align, top);
  }
}

// A directory is as old as the newest array in it, at any depth.
std::int64_t Tree::add_split(const Split& split, std::uint64_t header_align, const Parent& parent) {
  const Parent directory = add_directory(parent, split.name);
  std::int64_t newest = 0;
  add_attributes(split.attributes, "attrs.json", directory);
  for (const NamedArray& array : split.arrays) {
    newest = std::max(newest, add_array(array, header_align, directory));
  }
  if (split.records != nullptr && !split.records->stored().empty()) {
    add_records(split.records, directory);
  }
  for (const Split& group : split.groups) {
    newest = std::max(newest, add_split(group, header_align, directory));
  }
  node(directory.ino).mtime_ns = newest;
  return newest;
}

std::int64_t Tree::add_array(const NamedArray& array, std::uint64_t header_align,
                             const Parent& parent) {
  Node& node = add_node(parent, array.name + ".npy");
  node.file = std::make_shared<NpyFile>(array, header_align);
  node.mtime_ns = newest_mtime_ns(node.file->sources());
  add_attributes(array.attributes, array.name + ".attrs.json", parent);
  return node.mtime_ns;
}

void Tree::add_attributes(const Dict& attributes, const std::string& name, const Parent& parent) {
  if (!attributes.empty()) {
    add_node(parent, name).file = std::make_shared<AttributesFile>(print_json(Value{attributes}));
  }
}

void Tree::add_records(const std::shared_ptr<const RecordTable>& table, const Parent& parent) {
  auto files = std::make_shared<const RecordFiles>(table);
  const Ino first = records_.empty() ? root_ + kFirstRecord
                                     : records_.back().first + records_.back().files->count();
  if (files->count() > root_ - kRoot + kNumbers - first) {
    throw Error(ErrorKind::kTooLarge,
                fmt::format("{}/records: {} files, expected at most {} in all splits",
                            node(parent.ino).name, files->count(), kNumbers - kFirstRecord));
  }
  Node& node = add_node(parent, "records");
  node.directory = std::make_unique<RecordDirectory>(files, first);
  node.mtime_ns = newest_mtime_ns(files->sources());
  parent.entries.count_directory();
  records_.push_back({node.ino, first, std::move(files)});
}

Node& Tree::add_node(const Parent& parent, const std::string& name, bool listed) {
  nodes_.push_back(std::make_unique<Node>());
  Node& node = *nodes_.back();
  node.ino = root_ + nodes_.size() - 1;
  node.parent = parent.ino;
  node.name = name;
  parent.entries.add(name, node.ino, listed);
  return node;
}

Tree::Parent Tree::fill(Node& node) {
  auto entries = std::make_unique<NamedDirectory>();
  const Parent filled{node.ino, *entries};
  node.directory = std::move(entries);
  return filled;
}

Tree::Parent Tree::add_directory(const Parent& parent, const std::string& name, bool listed) {
  if (listed) {
    parent.entries.count_directory();
  }
  return fill(add_node(parent, name, listed));
}

// The parent of every root is the mount's.
Tree::Parent Tree::add_root(const std::string& name) {
  nodes_.push_back(std::make_unique<Node>());
  Node& node = *nodes_.back();
  node.ino = root_;
  node.parent = kRoot;
  node.name = name;
  return fill(node);
}

void Tree::finish() {
  // What has no source of its own is as old as the newest source.
  std::int64_t newest = 0;
  for (const auto& node : nodes_) {
    newest = std::max(newest, node->mtime_ns);
  }
  for (const auto& node : nodes_) {
    node->mtime_ns = node->mtime_ns == 0 ? newest : node->mtime_ns;
    total_nbytes_ += node->file != nullptr ? node->file->nbytes() : 0;
  }
  total_files_ = nodes_.size() - records_.size();
  for (const Records& records : records_) {
    total_files_ += records.files->count();
  }
}

// The records/ directory that a number behind those of nodes is of; null: none.
const Tree::Records* Tree::find_records(Ino ino) const {
  const auto behind =
      std::upper_bound(records_.begin(), records_.end(), ino,
                       [](Ino wanted, const Records& records) { return wanted < records.first; });
  if (behind == records_.begin()) {
    return nullptr;
  }
  const Records& records = *(behind - 1);
  return ino - records.first < records.files->count() ? &records : nullptr;
}

std::optional<Entry> Tree::find(Ino ino) const {
  if (ino >= root_ && ino - root_ < nodes_.size()) {
    return Entry(node(ino));
  }
  const Records* records = find_records(ino);
  if (records == nullptr) {
    return std::nullopt;
  }
  return Entry(ino, node(records->directory), RecordFile(*records->files, ino - records->first));
}

std::optional<Ino> Tree::lookup(Ino directory, std::string_view name) const {
  const auto entry = find(directory);
  return entry && entry->directory() != nullptr ? entry->directory()->find(name) : std::nullopt;
}

std::string Tree::path(Ino ino) const {
  const auto entry = find(ino);
  if (!entry) {
    return "?";
  }
  std::string path;
  if (const Records* records = find_records(ino)) {
    path = records->files->name(ino - records->first);
    ino = records->directory;
  }
  for (const Node* above = &node(ino); !above->name.empty(); above = &node(above->parent)) {
    path.insert(0, path.empty() ? above->name : above->name + "/");
    if (above->ino == root_) {
      break;
    }
  }
  return path.empty() ? "/" : printable(path);
}

void Tree::for_each_fed(const std::function<void(const FedFiles&)>& visit) const {
  for (const auto& node : nodes_) {
    if (node->file != nullptr && !node->file->sources().empty()) {
      visit({node->ino, 1, node->file->sources()});
    }
  }
  for (const Records& records : records_) {
    visit({records.first, records.files->count(), records.files->sources()});
  }
}

std::vector<std::uint64_t> Tree::own_chunks() const {
  std::vector<std::uint64_t> all;
  for (const auto& node : nodes_) {
    if (const auto own = node->file != nullptr ? node->file->own_chunks() : std::nullopt) {
      all.push_back(*own);
    }
  }
  return all;
}

}  // namespace npyfs
