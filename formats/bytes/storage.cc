// SPDX-License-Identifier: Apache-2.0

#include "formats/bytes/storage.h"

#include <fmt/format.h>

#include <utility>

#include "formats/bytes/error.h"
#include "formats/bytes/local_storage.h"
#include "formats/bytes/paths.h"

namespace npyfs {

SourcePtr Storage::find(const std::string& key) const {
  return kind_of(key) == Kind::kNone ? nullptr : open(key);
}

Storage::Found Storage::look_up(const std::string& key) const {
  const Kind kind = kind_of(key);
  return {kind, kind == Kind::kFile ? open(key) : nullptr};
}

Storage::Kind Storage::kind_if_known(const std::string& key) const {
  try {
    return kind_of(key);
  } catch (const Error&) {
    return Kind::kNone;
  }
}

bool Storage::has_file(const std::string& key) const { return kind_if_known(key) == Kind::kFile; }

bool Storage::has_folder(const std::string& key) const {
  return kind_if_known(key) == Kind::kFolder;
}

bool Storage::has(const std::string& key) const {
  const Kind kind = kind_if_known(key);
  return kind != Kind::kNone && kind != Kind::kDeadLink;
}

bool Storage::goes_round(const std::string& key) const {
  const std::optional<Identity> own = identify(key);
  if (!own || !own->exists()) {
    return false;
  }
  std::string above = key;
  while (!above.empty() && above != "/") {
    above = folder_of_path(above);
    const std::optional<Identity> other = identify(above);
    if (other && other->device == own->device && other->inode == own->inode) {
      return true;
    }
  }
  return false;
}

void require_no_url(const std::string& location) {
  if (const std::string_view scheme = url_scheme(location); !scheme.empty()) {
    throw file_error(ErrorKind::kUnsupported, location,
                     fmt::format("npyfs does not read {}:// yet, expected a local path; copy the "
                                 "data here first, or mount its storage as a folder",
                                 scheme));
  }
}

StoragePtr open_storage(const std::string& location, const Confinement& confinement) {
  return open_local_storage(location, confinement);
}

SourcePtr open_named_file(const std::string& path) {
  const StoragePtr paths = open_storage("");
  if (!paths->has(path)) {
    require_no_url(path);
  }
  return paths->open(path);
}

}  // namespace npyfs
