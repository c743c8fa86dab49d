// SPDX-License-Identifier: Apache-2.0

#include "formats/opening.h"

#include "formats/bytes/paths.h"

namespace npyfs {

std::string OpenContext::decode_kind(const std::string& name) const {
  const auto found = decode.find(name);
  return found != decode.end() ? found->second : std::string();
}

Confinement OpenContext::confined_to(const std::string& folder) const {
  if (!confine) {
    return Confinement();
  }
  return base_dir.empty() ? Confinement({folder}) : Confinement({folder, base_dir});
}

StoragePtr OpenContext::storage(const std::string& path) const {
  return open_storage(path, confined_to(path.empty() ? "." : path));
}

SourcePtr OpenContext::open_beside(const std::string& path) const {
  return storage(folder_of_path(path))->find(std::string(name_of_path(path)));
}

}  // namespace npyfs
