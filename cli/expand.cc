// SPDX-License-Identifier: Apache-2.0

#include "cli/expand.h"

#include <fmt/format.h>
#include <glob.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "cli/brace.h"
#include "formats/bytes/error.h"
#include "formats/bytes/storage.h"

namespace npyfs {

namespace {

// Where the extension begins (its dot), or the end.
std::size_t extension_at(std::string_view path) {
  const std::size_t name = path.find_last_of('/') + 1;
  const std::size_t dot = path.find_last_of('.');
  return dot == std::string_view::npos || dot <= name ? path.size() : dot;
}

struct GlobMatches {
  glob_t found{};
  GlobMatches() = default;
  GlobMatches(const GlobMatches&) = delete;
  GlobMatches& operator=(const GlobMatches&) = delete;
  ~GlobMatches() { ::globfree(&found); }
};

// In bytewise order, whatever the locale.
std::vector<std::string> expand_glob(const std::string& pattern) {
  GlobMatches matches;
  const int result = ::glob(pattern.c_str(), GLOB_NOSORT, nullptr, &matches.found);
  if (result == GLOB_NOMATCH) {
    throw file_error(ErrorKind::kNotFound, pattern, "no file matches this pattern");
  }
  if (result != 0) {
    throw system_error(pattern, "expand", result == GLOB_NOSPACE ? ENOMEM : errno);
  }
  std::vector<std::string> paths(matches.found.gl_pathv,
                                 matches.found.gl_pathv + matches.found.gl_pathc);
  std::sort(paths.begin(), paths.end());

  if (std::none_of(paths.begin(), paths.end(), is_named_as_index)) {
    return paths;
  }
  IndexFiles index_files;
  for (const std::string& path : paths) {
    if (!is_named_as_index(path)) {
      index_files.add_data_file(path);
    }
  }
  std::erase_if(paths, [&](const std::string& path) { return index_files.belongs(path); });
  return paths;
}

constexpr const char* kGlobMarks = "*?[";

// "data" of "data/*/a?.ark".
std::string folder_of_glob(std::string_view pattern) {
  const std::size_t slash = pattern.substr(0, pattern.find_first_of(kGlobMarks)).find_last_of('/');
  return slash == std::string_view::npos ? "." : std::string(pattern.substr(0, slash + 1));
}

void add(Expansion& expansion, std::string path, const std::string& folder) {
  expansion.paths.push_back(std::move(path));
  expansion.folders.push_back(folder);
}

void expand_item(const std::string& item, Expansion& expansion) {
  if (path_exists(item)) {
    add(expansion, item, "");
    return;
  }
  require_no_url(item);
  const StoragePtr paths = open_storage("");
  for (const std::string& path : expand_braces(item)) {
    if (!path.empty() && paths->has(path)) {
      add(expansion, path, "");
    } else if (path.find_first_of(kGlobMarks) != std::string::npos) {
      for (std::string& match : expand_glob(path)) {
        add(expansion, std::move(match), folder_of_glob(path));
      }
    } else {
      paths->kind_of(path);  // says why, unless there is nothing
      throw system_error(path, "open", ENOENT);
    }
  }
}

}  // namespace

bool path_exists(const std::string& path) { return !path.empty() && open_storage("")->has(path); }

Expansion expand_location(const std::string& location) {
  Expansion expansion;
  if (path_exists(location)) {
    add(expansion, location, "");
    return expansion;
  }
  expansion.is_list = true;
  std::size_t begin = 0;
  while (begin < location.size()) {
    const std::size_t end = std::min(location.find(';', begin), location.size());
    if (end == begin) {
      throw Error(ErrorKind::kUsage, fmt::format("'{}' has an empty name in its list", location));
    }
    expand_item(location.substr(begin, end - begin), expansion);
    begin = end + 1;
  }
  return expansion;
}

bool is_named_as_index(std::string_view path) {
  static constexpr std::array<std::string_view, 5> kExtensions = {".idx", ".lst", ".tfindex",
                                                                  ".index", ".tfidx"};
  const std::string_view extension = path.substr(extension_at(path));
  return std::find(kExtensions.begin(), kExtensions.end(), extension) != kExtensions.end();
}

void IndexFiles::add_data_file(std::string_view path) {
  stems_.emplace(path);
  for (std::size_t at = extension_at(path); at < path.size(); at = extension_at(path)) {
    path = path.substr(0, at);
    stems_.emplace(path);
  }
}

bool IndexFiles::belongs(std::string_view path) const {
  return is_named_as_index(path) &&
         stems_.contains(std::string(path.substr(0, extension_at(path))));
}

}  // namespace npyfs
