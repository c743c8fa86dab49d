// SPDX-License-Identifier: Apache-2.0

#include "formats/zarr/hierarchy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/bytes/error.h"
#include "formats/bytes/paths.h"
#include "formats/bytes/value_access.h"
#include "formats/zarr/array_grid.h"
#include "formats/zarr/documents.h"
#include "formats/zarr/metadata.h"
#include "formats/zarr/objects.h"
#include "formats/zarr/renamed_members.h"

namespace npyfs {

namespace {

// Deeper than any store nests.
constexpr int kMostDepth = 64;
// How many times links may lead to a folder that was listed before.
constexpr std::uint64_t kMostListedAgain = 1000;
// Chunks that are looked at when the store is opened: about 3 microseconds and 32 bytes each.
constexpr std::uint64_t kMostNotes = std::uint64_t{1} << 16;

constexpr const char* kArrayV2 = ".zarray";
constexpr const char* kGroupV2 = ".zgroup";
constexpr const char* kAttributesV2 = ".zattrs";
constexpr const char* kConsolidatedV2 = ".zmetadata";
constexpr const char* kNodeV3 = "zarr.json";

class HierarchyReader {
 public:
  HierarchyReader(StoragePtr storage, OpenContext& context)
      : storage_(std::move(storage)),
        opened_at_ns_(storage_->take_time()),
        context_(context),
        documents_(*storage_, opened_at_ns_) {}

  StorePtr read() {
    gather_v2();
    Node root;
    read_node("", "", 0, root);
    if (!root.found) {
      throw file_error(ErrorKind::kUnsupported, storage_->name_of(""),
                       "no zarr metadata, expected zarr.json, .zgroup or .zarray; give the folder "
                       "that holds it");
    }
    warn_of_renamed();
    store_->root = std::move(root.group);
    if (!root.arrays.empty()) {
      // The store is this one array.
      store_->root.attributes = std::move(root.arrays.front().attributes);
      root.arrays.front().attributes.clear();
      store_->root.arrays = std::move(root.arrays);
    }
    return store_;
  }

 private:
  // What stands at one prefix: a group, or an array, which may be shown as several.
  struct Node {
    bool found = false;
    Group group;
    std::vector<StoredArray> arrays;
  };

  // How an array's chunks are called.
  struct ChunkNames {
    ChunkKeys keys;
    Shape grid_shape;
  };

  void gather_v2() {
    const std::string key = kConsolidatedV2;
    try {
      const auto document = documents_.find(key);
      const Dict* metadata =
          document ? as_dict(find_value(document->content, "metadata")) : nullptr;
      if (metadata != nullptr) {
        store_->sources.push_back(document->source);
        documents_.gather("", *metadata, "", document->source);
      }
    } catch (const Error& error) {
      warn(error, "it is ignored");
    }
  }

  void read_node(const std::string& prefix, const std::string& name, int depth, Node& node) {
    try {
      if (const auto document = documents_.find(join_keys(prefix, kNodeV3))) {
        read_v3(prefix, name, depth, *document, node);
        return;
      }
      if (const auto document = documents_.find(join_keys(prefix, kArrayV2))) {
        node.found = true;
        node.arrays = read_array(prefix, name, *document, 2, attributes_v2(prefix));
        return;
      }
      const bool is_group = is_group_v2(prefix);
      node.group.attributes = attributes_v2(prefix);
      read_group(prefix, name, depth, node);
      node.found = is_group || !node.group.arrays.empty() || !node.group.groups.empty() ||
                   (depth == 0 && !node.group.attributes.empty());
    } catch (const Error& error) {
      if (prefix.empty() || !is_of_one_node(error)) {
        throw;
      }
      warn(error, fmt::format("{} is left out", printable(prefix)));
    }
  }

  // What stands there says nothing that its arrays need: damaged it hides none of them.
  bool is_group_v2(const std::string& prefix) {
    try {
      const auto document = documents_.find(join_keys(prefix, kGroupV2));
      if (document) {
        store_->sources.push_back(document->source);
      }
      return document.has_value();
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kCorrupt) {
        throw;
      }
      warn(error, "it is taken for a group all the same");
      return true;
    }
  }

  // Whether the rest of the store can be shown without what has failed so.
  static bool is_of_one_node(const Error& error) {
    switch (error.kind()) {
      case ErrorKind::kCorrupt:
      case ErrorKind::kUnsupported:
      case ErrorKind::kTooLarge:
      case ErrorKind::kNotFound:
        return true;
      case ErrorKind::kIo: {  // forbidden, a link to itself; but not where this process lacks what
                              // it needs
        const int code = error.to_errno();
        return code != EMFILE && code != ENFILE && code != ENOMEM;
      }
      default:
        return false;
    }
  }

  // Whether the folder may be listed. Links may lead to one folder many times, in more ways than
  // anybody can follow.
  bool may_list(const std::string& prefix) {
    const auto folder = storage_->identify(prefix);
    if (!folder || listed_.emplace(folder->device, folder->inode).second ||
        ++listed_again_ < kMostListedAgain) {
      return true;
    }
    if (listed_again_ == kMostListedAgain) {
      context_.warn(
          fmt::format("{}: links lead to folders of the store that were shown before, {} "
                      "times so far; what further ones lead to is left out",
                      printable(storage_->name_of(prefix)), listed_again_));
    }
    return false;
  }

  void read_v3(const std::string& prefix, const std::string& name, int depth,
               const Document& document, Node& node) {
    const std::string* type = as_text(find_value(document.content, "node_type"));
    const Dict* given = as_dict(find_value(document.content, "attributes"));
    const Dict attributes = given == nullptr ? Dict() : *given;
    if (type != nullptr && *type == "array") {
      node.found = true;
      node.arrays = read_array(prefix, name, document, 3, attributes);
      return;
    }
    if (type == nullptr || *type != "group" ||
        as_int64(find_value(document.content, "zarr_format")) != 3) {
      throw file_error(ErrorKind::kUnsupported, storage_->name_of(join_keys(prefix, kNodeV3)),
                       "node_type and zarr_format are not those of a group or an array of "
                       "version 3");
    }
    node.found = true;
    node.group.attributes = attributes;
    store_->sources.push_back(document.source);
    const Dict* consolidated = as_dict(find_value(document.content, "consolidated_metadata"));
    const Dict* metadata =
        consolidated == nullptr ? nullptr : as_dict(find_value(*consolidated, "metadata"));
    if (metadata != nullptr) {
      documents_.gather(prefix, *metadata, std::string("/") + kNodeV3, document.source);
    }
    read_group(prefix, name, depth, node);
  }

  void read_group(const std::string& prefix, const std::string& name, int depth, Node& node) {
    node.group.name = name;
    if (depth == kMostDepth) {
      throw file_error(ErrorKind::kUnsupported, storage_->name_of(prefix),
                       fmt::format("groups are nested deeper than {}", kMostDepth));
    }
    if (!may_list(prefix)) {
      return;
    }
    for (const std::string& child : documents_.children(prefix)) {
      Node inner;
      read_node(join_keys(prefix, child), child, depth + 1, inner);
      if (!inner.found) {
        continue;
      }
      if (inner.arrays.empty() && inner.group.name.empty()) {
        continue;  // an array that was left out
      }
      if (inner.arrays.empty()) {
        node.group.groups.push_back(std::move(inner.group));
      }
      std::move(inner.arrays.begin(), inner.arrays.end(), std::back_inserter(node.group.arrays));
    }
  }

  // Damaged attributes hide nothing but themselves.
  Dict attributes_v2(const std::string& prefix) {
    try {
      if (auto document = documents_.find(join_keys(prefix, kAttributesV2))) {
        store_->sources.push_back(document->source);
        return std::move(document->content);
      }
    } catch (const Error& error) {
      warn(error, "the attributes are left out");
    }
    return {};
  }

  std::vector<StoredArray> read_array(const std::string& prefix, const std::string& name,
                                      const Document& document, int version,
                                      const Dict& attributes) {
    try {
      ArrayMetadata metadata =
          version == 2 ? read_metadata_v2(document.content) : read_metadata_v3(document.content);
      settle_separator(prefix, metadata);
      arrays_[prefix] = {metadata.keys, grid_shape_of(metadata.shape, metadata.chunk_shape)};
      std::vector<StoredArray> arrays = open_array(prefix, name, metadata, document.source);
      arrays.front().attributes = attributes;
      for (StoredArray& array : arrays) {
        array.sources.push_back(document.source);
      }
      return arrays;
    } catch (const Error& error) {
      // Name the document, unless the text names a file already.
      const std::string file =
          storage_->name_of(join_keys(prefix, version == 2 ? kArrayV2 : kNodeV3));
      if (std::string_view(error.what()).starts_with(printable(storage_->name_of("")))) {
        throw;
      }
      throw file_error(error.kind(), file, error.what());
    }
  }

  // Stores once written by nested key mappings have '/' without saying so.
  void settle_separator(const std::string& prefix, ArrayMetadata& metadata) const {
    if (!metadata.separator_given && metadata.shape.size() > 1 &&
        storage_->has_folder(join_keys(prefix, "0"))) {
      metadata.keys.separator = '/';
    }
  }

  // A member of an archive that a flipped bit in the directory has renamed: what it was seems never
  // to have been written. Those that are read are compared then; left are those that nobody reads.
  // That there are such means nothing by itself: zarr-python, which makes an array in an archive
  // smaller, cannot remove its chunks.
  void warn_of_renamed() const {
    const auto keys = storage_->keys_below("");
    if (!keys) {
      return;
    }
    RenamedMembers renamed;
    for (const std::string& key : *keys) {
      if (!is_metadata(key) && !is_chunk(key)) {
        renamed.look_at([&] { storage_->require_own_name(key); });
      }
    }
    renamed.tell("that no array has", context_.warn);
  }

  static bool is_metadata(std::string_view key) {
    const std::string_view name = key.substr(key.find_last_of('/') + 1);
    return names_node(name) || name == kAttributesV2;
  }

  // Of an array that there is.
  bool is_chunk(const std::string& key) const {
    const auto has = [&](const std::string& prefix, std::string_view below) {
      const auto array = arrays_.find(prefix);
      return array != arrays_.end() && array->second.keys.number(below, array->second.grid_shape);
    };
    for (std::size_t slash = key.find('/'); slash != std::string::npos;
         slash = key.find('/', slash + 1)) {
      if (has(key.substr(0, slash), std::string_view(key).substr(slash + 1))) {
        return true;
      }
    }
    return has("", key);
  }

  std::vector<StoredArray> open_array(const std::string& prefix, const std::string& name,
                                      const ArrayMetadata& metadata, const SourcePtr& source) {
    const MakeGrid make_grid = [&](const DType& dtype, const Element& element) {
      ArrayParts parts;
      parts.dtype = dtype;
      parts.shape = metadata.shape;
      parts.stored_shape = metadata.chunk_shape;
      parts.fill = element.fill;
      parts.pipeline = metadata.build(element);
      parts.storage = storage_;
      parts.opened_at_ns = opened_at_ns_;
      parts.prefix = prefix;
      parts.keys = metadata.keys;
      parts.metadata = source;
      parts.notes_left = &notes_left_;
      return make_array_grid(std::move(parts), *context_.cache);
    };
    switch (metadata.type.objects) {
      case ElementObjects::kText:
        return {open_texts(name, metadata.text_fill, make_grid, context_)};
      case ElementObjects::kBytes:
        return open_ragged(name, metadata.type.dtype, make_grid, context_);
      case ElementObjects::kNone:
        break;
    }
    const DType& dtype = metadata.type.dtype;
    const ArrayGrid grid =
        make_grid(dtype, {dtype.itemsize, number_nbytes(dtype), nullptr, metadata.fill});
    StoredArray array;
    array.name = name;
    array.parts = {grid.grid};
    array.sources = {grid.source};
    return {array};
  }

  void warn(const Error& error, const std::string& consequence) const {
    context_.warn(fmt::format("{}; {}", error.what(), consequence));
  }

  StoragePtr storage_;
  std::int64_t opened_at_ns_;
  OpenContext& context_;
  Documents documents_;
  std::map<std::string, ChunkNames> arrays_;  // by prefix
  std::uint64_t notes_left_ = kMostNotes;
  std::set<std::pair<std::uint64_t, std::uint64_t>> listed_;  // folders: device and inode
  std::uint64_t listed_again_ = 0;
  std::shared_ptr<Store> store_ = std::make_shared<Store>();
};

}  // namespace

StorePtr open_hierarchy(StoragePtr storage, OpenContext& context) {
  return HierarchyReader(std::move(storage), context).read();
}

}  // namespace npyfs
