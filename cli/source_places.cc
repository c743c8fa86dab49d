// SPDX-License-Identifier: Apache-2.0

#include "cli/source_places.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>
#include <string_view>

#include "cli/source_spec.h"
#include "formats/bytes/error.h"
#include "formats/bytes/local_storage.h"
#include "formats/bytes/paths.h"
#include "formats/bytes/storage.h"

namespace npyfs {

namespace {

Storage::Kind kind_of(const std::string& path) {
  try {
    return open_storage("")->kind_of(path);
  } catch (const Error&) {
    return Storage::Kind::kNone;  // whoever opens it says why
  }
}

bool is_there(const std::string& path) { return kind_of(path) != Storage::Kind::kNone; }

std::string absolute(const std::string& path) {
  std::string normal = absolute_path_of(path);
  // ".." after a link leads elsewhere than it looks.
  if (!has_part(normal, "..")) {
    normal = normal_path(normal);
  }
  while (normal.size() > 1 && normal.ends_with('/')) {
    normal.pop_back();
  }
  return normal;
}

// The paths or patterns of a LOCATION, absolute.
std::vector<std::string> places_of(const SourceSpec& spec) {
  std::vector<std::string> places;
  const bool is_list = !is_there(spec.location);
  for (std::string_view left = spec.location; !left.empty();) {
    const std::size_t end = is_list ? std::min(left.find(';'), left.size()) : left.size();
    places.push_back(absolute(std::string(left.substr(0, end))));
    left.remove_prefix(std::min(end + 1, left.size()));
  }
  return places;
}

// The folder whose files a path or a pattern may name.
std::string folder_of_place(const std::string& place) {
  if (kind_of(place) == Storage::Kind::kFolder) {
    return place;
  }
  const bool is_pattern = !is_there(place);
  return folder_of_path(is_pattern ? place.substr(0, place.find_first_of("*?[{")) : place);
}

std::string shared_folder(const std::string& a, const std::string& b) {
  std::string shared = a;
  while (shared != "/" && !shared.empty() && shared != b && !b.starts_with(shared + "/")) {
    shared = folder_of_path(shared);
  }
  return shared.empty() ? "/" : shared;
}

std::vector<SourceSpec> parse_all(const std::vector<std::string>& sources) {
  std::vector<SourceSpec> specs;
  specs.reserve(sources.size());
  for (const std::string& source : sources) {
    specs.push_back(parse_source(source));
  }
  return specs;
}

// What says that SOURCEs without a split are all in one: a folder's entries may be in several.
bool is_file(const SourceSpec& spec) { return kind_of(spec.location) == Storage::Kind::kFile; }

}  // namespace

std::string folder_of_sources(const std::vector<std::string>& sources) {
  std::string folder;
  for (const SourceSpec& spec : parse_all(sources)) {
    for (const std::string& place : places_of(spec)) {
      const std::string one = folder_of_place(place);
      folder = folder.empty() ? one : shared_folder(folder, one);
    }
  }
  return folder.empty() ? "/" : folder;
}

std::string text_of_sources(const std::vector<std::string>& sources, const std::string& folder,
                            bool has_splits) {
  std::string text;
  for (const SourceSpec& spec : parse_all(sources)) {
    const std::string split = has_splits                             ? "split:" + spec.split
                              : spec.split.empty() && !is_file(spec) ? "found"
                                                                     : "given";
    std::string line = fmt::format("{}/{}={}:{}", split, spec.array,
                                   spec.format != nullptr ? spec.format->name : "",
                                   spec.said.permissive ? "permissive:" : "");
    for (const auto& [name, values] : spec.said.options) {
      line += fmt::format("{}:{}", name, values.size());
      for (const std::string& value : values) {
        line += fmt::format(":{}:{}", value.size(), value);
      }
    }
    for (const std::string& place : places_of(spec)) {
      const std::string shown = path_from(place, folder);
      line += fmt::format(";{}:{}", shown.size(), shown);
    }
    text += fmt::format("{}:{}", line.size(), line);
  }
  return text;
}

std::string path_from(const std::string& path, const std::string& folder) {
  const std::string place = absolute(path);
  const std::string prefix = folder == "/" ? folder : folder + "/";
  return folder.empty() || !place.starts_with(prefix) ? (place == folder ? "." : place)
                                                      : "./" + place.substr(prefix.size());
}

std::size_t splits_of_sources(const std::vector<std::string>& sources) {
  std::set<std::string> splits;
  for (const SourceSpec& spec : parse_all(sources)) {
    splits.insert(spec.split);
  }
  return splits.size();
}

std::unordered_set<std::uint64_t> hashes_of_files(const std::vector<std::string>& sources) {
  std::unordered_set<std::uint64_t> hashes;
  for (const SourceSpec& spec : parse_all(sources)) {
    for (const std::string& place : places_of(spec)) {
      if (kind_of(place) == Storage::Kind::kFile) {
        hashes.insert(std::hash<std::string>()(place));
        hashes.insert(std::hash<std::string>()(absolute_path_of(spec.location)));
      }
    }
  }
  return hashes;
}

}  // namespace npyfs
