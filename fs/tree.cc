// SPDX-License-Identifier: Apache-2.0

#include "fs/tree.h"

#include <algorithm>

#include "formats/bytes/error.h"
#include "formats/bytes/value.h"

namespace npyfs {

namespace {

// A record file's number: this bit, its directory's number, its own number in the low 40 bits. 2^40
// records of a split are more than any index could hold.
constexpr Ino kRecordBit = Ino{1} << 62;
constexpr unsigned kFileBits = 40;
constexpr Ino kFileMask = (Ino{1} << kFileBits) - 1;

}  // namespace

Tree::Tree(const Dataset& dataset, std::uint64_t header_align) {
  add(Node::Kind::kDirectory, kRoot, "");
  const Ino attrs_npy = add(Node::Kind::kBytes, kRoot, "attrs.npy").ino;
  nodes_[attrs_npy - kRoot]->bytes = print_attrs_npy(dataset.attributes);
  const Ino attrs_json = add(Node::Kind::kBytes, kRoot, "attrs.json").ino;
  nodes_[attrs_json - kRoot]->bytes = print_json(Value{dataset.attributes});
  for (const NamedArray& array : dataset.arrays) {
    add_array(array, kRoot, header_align);
  }
  for (const Split& split : dataset.splits) {
    add_split(split, kRoot, header_align);
  }
  const Ino status = add(Node::Kind::kDirectory, kRoot, kStatusDirectory, false).ino;
  add(Node::Kind::kStatus, status, kErrorsFile);
  // What has no source of its own is as old as the newest source.
  std::int64_t newest = 0;
  for (const auto& node : nodes_) {
    newest = std::max(newest, node->mtime_ns);
  }
  for (const auto& node : nodes_) {
    node->mtime_ns = node->mtime_ns == 0 ? newest : node->mtime_ns;
    total_nbytes_ += node->npy != nullptr ? node->npy->nbytes() : node->bytes.size();
    total_files_ += node->records != nullptr ? node->records->count() : 1;
  }
}

void Tree::add_split(const Split& split, Ino parent, std::uint64_t header_align) {
  const Ino directory = add(Node::Kind::kDirectory, parent, split.name).ino;
  add_attributes(directory, "attrs.json", split.attributes);
  for (const NamedArray& array : split.arrays) {
    add_array(array, directory, header_align);
  }
  if (split.records != nullptr && !split.records->stored().empty()) {
    Node& node = add(Node::Kind::kRecords, directory, "records");
    node.records = std::make_unique<RecordFiles>(split.records);
    node.mtime_ns = node.records->mtime_ns();
  }
  for (const Split& group : split.groups) {
    add_split(group, directory, header_align);
  }
  // A directory is as old as the newest array in it, at any depth.
  std::int64_t newest = 0;
  for (const Ino child : nodes_[directory - kRoot]->children) {
    const Node& node = *nodes_[child - kRoot];
    newest = node.kind == Node::Kind::kRecords ? newest : std::max(newest, node.mtime_ns);
  }
  nodes_[directory - kRoot]->mtime_ns = newest;
}

void Tree::add_array(const NamedArray& array, Ino parent, std::uint64_t header_align) {
  Node& node = add(Node::Kind::kArray, parent, array.name + ".npy");
  node.npy = std::make_unique<NpyFile>(array, header_align);
  node.mtime_ns = node.npy->mtime_ns();
  add_attributes(parent, array.name + ".attrs.json", array.attributes);
}

void Tree::add_attributes(Ino parent, const std::string& name, const Dict& attributes) {
  if (!attributes.empty()) {
    add(Node::Kind::kBytes, parent, name).bytes = print_json(Value{attributes});
  }
}

Node& Tree::add(Node::Kind kind, Ino parent, const std::string& name, bool listed) {
  const Ino ino = kRoot + nodes_.size();
  auto node = std::make_unique<Node>();
  node->kind = kind;
  node->ino = ino;
  node->parent = parent;
  node->name = name;
  node->listed = listed;
  nodes_.push_back(std::move(node));
  if (ino != kRoot) {
    Node& above = *nodes_[parent - kRoot];
    above.by_name.emplace(name, ino);
    if (listed) {
      above.children.push_back(ino);
    }
  }
  return *nodes_.back();
}

std::optional<Target> Tree::find(Ino ino) const {
  const bool is_record = (ino & kRecordBit) != 0;
  const Ino number = is_record ? (ino & ~kRecordBit) >> kFileBits : ino;
  if (number < kRoot || number - kRoot >= nodes_.size()) {
    return std::nullopt;
  }
  Target target{nodes_[number - kRoot].get(), is_record, is_record ? ino & kFileMask : 0};
  if (is_record &&
      (target.node->records == nullptr || target.record_file >= target.node->records->count())) {
    return std::nullopt;
  }
  return target;
}

std::optional<Ino> Tree::lookup(Ino directory, std::string_view name) const {
  const auto target = find(directory);
  if (!target || target->is_record) {
    return std::nullopt;
  }
  const Node& node = *target->node;
  if (node.records != nullptr) {
    const auto file = node.records->find(name);
    return file ? std::optional(record_ino(node, *file)) : std::nullopt;
  }
  const auto child = node.by_name.find(name);
  return child != node.by_name.end() ? std::optional(child->second) : std::nullopt;
}

Ino Tree::record_ino(const Node& records, std::uint64_t file) const {
  return kRecordBit | (records.ino << kFileBits) | file;
}

std::string Tree::path(Ino ino) const {
  const auto target = find(ino);
  if (!target) {
    return "?";
  }
  std::string path = target->is_record ? target->node->records->name(target->record_file) : "";
  for (const Node* node = target->node; node->ino != kRoot;
       node = nodes_[node->parent - kRoot].get()) {
    path.insert(0, path.empty() ? node->name : node->name + "/");
  }
  return path.empty() ? "/" : printable(path);
}

}  // namespace npyfs
