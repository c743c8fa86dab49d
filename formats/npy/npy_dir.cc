// SPDX-License-Identifier: Apache-2.0

#include "formats/npy/npy_dir.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "formats/bytes/error.h"
#include "formats/bytes/paths.h"
#include "formats/npy/attrs_file.h"

namespace npyfs {

namespace {

using Kind = Storage::Kind;

constexpr std::string_view kNpy = ".npy";
constexpr std::string_view kAttrsNpy = "attrs.npy";
constexpr std::string_view kAttrsJson = "attrs.json";
constexpr std::string_view kOwnAttrs = ".attrs.json";
// Deeper than any store nests.
constexpr int kMostDepth = 64;

std::string_view stem(std::string_view name, std::string_view suffix) {
  return name.substr(0, name.size() - suffix.size());
}

struct Counts {
  std::size_t arrays = 0;
  std::size_t others = 0;
  bool has_attributes = false;
};

Counts count_files(const std::vector<Storage::Entry>& entries) {
  Counts counts;
  for (const Storage::Entry& entry : entries) {
    const bool is_array = entry.name.ends_with(kNpy);
    if (entry.kind == Kind::kFile) {
      counts.has_attributes |= entry.name == kAttrsNpy;
      counts.arrays += is_array;
      counts.others += !is_array && !entry.name.ends_with(kAttrsJson);
    }
  }
  return counts;
}

class DirectoryReader {
 public:
  DirectoryReader(const Storage& storage, OpenContext& context, Store& store)
      : storage_(storage), context_(context), store_(store) {}

  // Whether anything of the directory is to be shown.
  bool read(const std::string& directory, int depth, Group& group) {
    const std::vector<Storage::Entry> entries = storage_.list(directory);
    std::vector<std::string> strangers;
    const bool has_attrs_npy = std::any_of(entries.begin(), entries.end(), [](const auto& entry) {
      return entry.name == kAttrsNpy && entry.kind == Kind::kFile;
    });
    for (const Storage::Entry& entry : entries) {
      const std::string path = join_keys(directory, entry.name);
      if (entry.kind == Kind::kFolder) {
        read_group(path, entry.name, depth, group);
      } else if (entry.name.ends_with(kNpy)) {
        read_npy(path, entry.name, group);
      } else if (entry.name == kAttrsJson || entry.name.ends_with(kOwnAttrs)) {
        if (entry.name != kAttrsJson || !has_attrs_npy) {
          read_json(path, entry.name, group);
        }
      } else {
        strangers.push_back(path);
      }
    }
    warn_of(strangers);
    return entries.empty() || !group.arrays.empty() || !group.groups.empty() ||
           !group.attributes.empty();
  }

 private:
  void read_group(const std::string& path, const std::string& name, int depth, Group& group) {
    if (depth == kMostDepth || storage_.goes_round(path)) {
      context_.warn(fmt::format("{}: left out, as the directories in it have no end",
                                printable(storage_.name_of(path))));
      return;
    }
    Group inner;
    inner.name = name;
    try {
      if (read(path, depth + 1, inner)) {
        group.groups.push_back(std::move(inner));
      }
    } catch (const Error& error) {
      leave_out_or_throw(error, path);
    }
  }

  void read_npy(const std::string& path, const std::string& name, Group& group) {
    try {
      SourcePtr source = storage_.open(path);
      if (name == kAttrsNpy) {
        if (auto attributes = read_attrs_file(*source, context_.warn)) {
          group.attributes = *std::move(attributes);
          store_.sources.push_back(std::move(source));
          return;
        }
      }
      StoredArray array;
      array.name = stem(name, kNpy);
      array.sources = {source};
      if (auto own = attributes_of_.extract(std::string(stem(path, kNpy)))) {
        array.attributes = std::move(own.mapped());
      }
      const std::uint64_t nbytes = source->nbytes();
      array.parts.emplace_back(read_stored_npy(std::move(source), 0, nbytes));
      group.arrays.push_back(std::move(array));
    } catch (const Error& error) {
      leave_out_or_throw(error, path);
    }
  }

  // Files sort so that x.attrs.json comes before x.npy.
  void read_json(const std::string& path, const std::string& name, Group& group) {
    try {
      SourcePtr source = storage_.open(path);
      Dict attributes = read_attrs_json(*source);
      if (name == kAttrsJson) {
        group.attributes = std::move(attributes);
      } else {
        attributes_of_.emplace(stem(path, kOwnAttrs), std::move(attributes));
      }
      store_.sources.push_back(std::move(source));
    } catch (const Error& error) {
      leave_out_or_throw(error, path);
    }
  }

  // What cannot be shown is left out; what is damaged only if the user says so.
  void leave_out_or_throw(const Error& error, const std::string& path) const {
    const bool lenient = error.kind() == ErrorKind::kUnsupported ||
                         error.kind() == ErrorKind::kTooLarge ||
                         (context_.permissive &&
                          (error.kind() == ErrorKind::kCorrupt || error.kind() == ErrorKind::kIo));
    if (!lenient) {
      throw;
    }
    context_.warn(fmt::format("{}; {} is left out", error.what(), printable(path)));
  }

  void warn_of(const std::vector<std::string>& strangers) const {
    if (!strangers.empty()) {
      context_.warn(fmt::format(
          "{}: left out, as it is no .npy file{}", printable(storage_.name_of(strangers.front())),
          strangers.size() > 1 ? fmt::format(" (and {} more beside it)", strangers.size() - 1)
                               : std::string()));
    }
  }

  const Storage& storage_;
  OpenContext& context_;
  Store& store_;
  std::map<std::string, Dict> attributes_of_;  // of arrays, by path without .npy
};

}  // namespace

bool is_npy_dir(const std::string& path, bool named) {
  try {
    const StoragePtr storage = open_storage(path);
    const std::vector<Storage::Entry> entries = storage->list("");
    const Counts top = count_files(entries);
    if (top.arrays > top.others || top.has_attributes || (named && top.arrays > 0)) {
      return true;
    }
    const bool is_called_so = storage->name_of("").ends_with(kNpy);
    if (top.others > 0 && !named && !is_called_so) {
      return false;
    }
    Counts inner;
    for (const Storage::Entry& entry : entries) {
      if (entry.kind == Kind::kFolder) {
        const Counts more = count_files(storage->list(entry.name));
        inner.arrays += more.arrays;
        inner.others += more.others;
      }
    }
    return inner.arrays > (named || is_called_so ? 0 : inner.others);
  } catch (const Error&) {
    return false;  // what cannot be listed is not ours to report
  }
}

StorePtr open_npy_dir(const std::string& path, OpenContext& context) {
  const StoragePtr storage = context.storage(path);
  auto store = std::make_shared<Store>();
  DirectoryReader(*storage, context, *store).read("", 0, store->root);
  return store;
}

}  // namespace npyfs
