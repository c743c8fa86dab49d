// SPDX-License-Identifier: Apache-2.0

#include "cli/found_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "cli/expand.h"
#include "formats/bytes/descriptor_pool.h"
#include "formats/bytes/error.h"
#include "formats/bytes/storage.h"
#include "formats/registry.h"

namespace npyfs {

namespace {

bool has_known_extension(const std::string& path, const Format* wanted) {
  if (wanted != nullptr) {
    return has_extension(*wanted, path);
  }
  const std::span<const Format> all = formats();
  return std::any_of(all.begin(), all.end(),
                     [&](const Format& format) { return has_extension(format, path); });
}

std::string formats_with_extensions() {
  std::string text;
  for (const Format& format : formats()) {
    for (const std::string& extension : format.extensions) {
      text += fmt::format("{}.{}", text.empty() ? "" : ", ", extension);
    }
  }
  return text;
}

class Finder {
 public:
  Finder(const SourceSpec& spec, const OpenContext& context) : spec_(spec), context_(context) {}

  std::vector<FoundFile> find() {
    if (spec_.location == "-" || (spec_.location.ends_with('|') && !path_exists(spec_.location))) {
      throw file_error(ErrorKind::kUnsupported, spec_.location,
                       "is standard input or a command, expected a file or a directory");
    }
    const Expansion expansion = expand_location(spec_.location);
    for (std::size_t i = 0; i < expansion.paths.size(); ++i) {
      const std::string& path = expansion.paths[i];
      // In a list, a folder is named as an entry of a directory is; alone, only its entries count.
      add_named(path, expansion.is_list ? split_of_name(path) : std::string(),
                expansion.folders[i]);
    }
    settle_splits(expansion.is_list);
    return std::move(found_);
  }

 private:
  // SPLIT is for all; else one file without a split word takes it from the others.
  void settle_splits(bool is_list) {
    const bool some_have_none = std::any_of(
        found_.begin(), found_.end(), [](const FoundFile& file) { return file.split.empty(); });
    // A store alone has its splits in itself, whatever it is called.
    const bool alone =
        !is_list && found_.size() == 1 && found_.front().location.path == spec_.location;
    for (FoundFile& file : found_) {
      const bool is_store = file.format->open_store != nullptr;
      if (is_store && spec_.split.empty() && (alone || some_have_none)) {
        file.array_split = file.split.empty() || !alone ? "train" : file.split;
        file.split.clear();
      } else if (!spec_.split.empty() || some_have_none) {
        file.split = spec_.split.empty() ? "train" : spec_.split;
      }
    }
  }

  // What the user named: it must be something. What a glob found in `folder` the user did not name.
  void add_named(const std::string& path, const std::string& split_of_folder,
                 const std::string& folder) {
    const Storage& paths = paths_for(folder);
    Storage::Found file = paths.look_up(path);
    switch (file.kind) {
      case Storage::Kind::kFile: {
        Location location{path, false, std::move(file.source)};
        const Format* format = spec_.format != nullptr ? spec_.format : detect_format(location);
        if (format == nullptr) {
          throw file_error(
              ErrorKind::kUnsupported, path,
              fmt::format(
                  "no format recognises this file, expected one of {} by its first bytes or "
                  "its name ({}); if it is one of them, write FORMAT:{}",
                  format_names(), formats_with_extensions(), path));
        }
        found_.push_back({std::move(location), format, split_of_name(path)});
        return;
      }
      case Storage::Kind::kFolder:
        paths.below(path);  // refuses a link that leads too far
        paths_ = open_storage("", context_.confined_to(path));
        add_directory(path, split_of_folder, split_of_folder.empty());
        return;
      case Storage::Kind::kNone:
      case Storage::Kind::kDeadLink:
        throw system_error(path, "open", ENOENT);
      case Storage::Kind::kOther:
        throw file_error(ErrorKind::kUnsupported, path,
                         "is neither a regular file nor a directory");
    }
  }

  // Where what a glob found in `folder` may lead; anywhere if that is empty.
  const Storage& paths_for(const std::string& folder) {
    if (named_paths_ == nullptr || named_folder_ != folder) {
      named_folder_ = folder;
      named_paths_ =
          open_storage("", folder.empty() ? Confinement() : context_.confined_to(folder));
    }
    return *named_paths_;
  }

  // A directory may be a set itself, or a project that has its sets in a folder of their own.
  bool add_set(const std::string& path, const std::string& split) {
    Location location{path, true, nullptr};
    const Format* format = recognise(location);
    if (format == nullptr) {
      return false;
    }
    found_.push_back({std::move(location), format, split});
    return true;
  }

  bool add_sets_folder(const std::string& path) {
    const char* folder = spec_.format != nullptr ? spec_.format->sets_folder : nullptr;
    return folder != nullptr && path_exists(path + "/" + folder) &&
           add_entries(path + "/" + folder, "", true);
  }

  void add_directory(const std::string& path, const std::string& split, bool may_hold_splits) {
    if (!add_set(path, split.empty() ? split_of_name(path) : split) &&
        !add_entries(path, split, may_hold_splits) && !add_sets_folder(path)) {
      throw file_error(
          ErrorKind::kNotFound, path,
          fmt::format(
              "the directory holds no file of {}, expected files whose first bytes or names "
              "({}) tell their format",
              spec_.format != nullptr ? fmt::format("format {}", spec_.format->name)
                                      : "a known format",
              formats_with_extensions()));
    }
  }

  // Adds the entries that a format recognises; whether there were any. Entries without a split of
  // their own get `split`.
  bool add_entries(const std::string& path, const std::string& split, bool may_hold_splits) {
    const std::string prefix = path.ends_with('/') ? path : path + "/";
    const std::size_t before = found_.size();
    std::vector<std::string> added;
    std::vector<std::string> left_out;
    for (const Storage::Entry& entry : paths_->list(path)) {
      const bool is_added = add_entry(prefix + entry.name, entry.kind, split, may_hold_splits);
      (is_added ? added : left_out).push_back(entry.name);
    }
    if (found_.size() == before) {
      return false;
    }
    if (!left_out.empty()) {
      IndexFiles index_files;
      for (const std::string& name : added) {
        index_files.add_data_file(name);
      }
      std::erase_if(left_out, [&](const std::string& name) { return index_files.belongs(name); });
    }
    if (!left_out.empty() && context_.warn) {
      const std::size_t others = left_out.size() - 1;
      context_.warn(fmt::format(
          "{}: left out, {}", printable(prefix + left_out.front()),
          others == 0 ? "as no format recognises it"
                      : fmt::format("and {} more in this directory, as no format recognises {}",
                                    others, "them")));
    }
    return true;
  }

  bool add_entry(const std::string& path, Storage::Kind kind, const std::string& split,
                 bool may_hold_splits) {
    Location location{path, false, nullptr};
    if (!may_add(location, kind)) {
      return false;
    }
    if (kind == Storage::Kind::kFolder) {
      const std::string own = split_of_name(path);
      if (add_set(path, split.empty() ? own : split)) {
        return true;
      }
      return may_hold_splits && !own.empty() && add_entries(path, own, false);
    }
    const Format* format = recognise(location);
    if (format == nullptr) {
      return false;
    }
    found_.push_back({std::move(location), format, split.empty() ? split_of_name(path) : split});
    return true;
  }

  // Whether an entry is a folder or a file, which is opened. What cannot be opened is neither,
  // unless its name says that it is part of the data: that must not go unnoticed.
  bool may_add(Location& location, Storage::Kind kind) const {
    try {
      switch (kind) {
        case Storage::Kind::kFile:
        case Storage::Kind::kDeadLink:
          location.source = paths_->open(location.path);
          return true;
        case Storage::Kind::kFolder:
          paths_->below(location.path);
          return true;
        case Storage::Kind::kNone:
        case Storage::Kind::kOther:
          return false;
      }
    } catch (const Error& error) {
      if (is_want_of_descriptors(error.to_errno()) ||
          has_known_extension(location.path, spec_.format)) {
        throw;
      }
    }
    return false;
  }

  const Format* recognise(const Location& location) const {
    if (spec_.format == nullptr) {
      return detect_format(location);
    }
    Location named = location;
    named.named = true;
    const bool fits = spec_.format->recognises(named) ||
                      (!location.is_directory && has_extension(*spec_.format, location.path));
    return fits ? spec_.format : nullptr;
  }

  const SourceSpec& spec_;
  const OpenContext& context_;
  // What the directory in hand may lead to: links in it may lead out of it.
  StoragePtr paths_;
  // What paths_for() answered last: many matches are of one glob.
  StoragePtr named_paths_;
  std::string named_folder_;
  std::vector<FoundFile> found_;
};

}  // namespace

std::vector<FoundFile> find_files(const SourceSpec& spec, const OpenContext& context) {
  try {
    return Finder(spec, context).find();
  } catch (const Error& error) {
    if (spec.location == spec.text || error.kind() != ErrorKind::kNotFound) {
      throw;
    }
    // How the SOURCE was read is half of the answer where a path with '=' or ':' was meant.
    throw Error(error.kind(), fmt::format("{} (SOURCE '{}')", error.what(), spec.text),
                error.to_errno());
  }
}

}  // namespace npyfs
