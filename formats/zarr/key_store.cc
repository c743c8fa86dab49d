// SPDX-License-Identifier: Apache-2.0

#include "formats/zarr/key_store.h"

namespace npyfs {

bool is_key(std::string_view name) {
  while (true) {
    const std::size_t slash = name.find('/');
    const std::string_view part = name.substr(0, slash);
    if (part.empty() || part == "." || part == ".." || part.find('\0') != std::string_view::npos ||
        part.find('\\') != std::string_view::npos) {
      return false;
    }
    if (slash == std::string_view::npos) {
      return true;
    }
    name.remove_prefix(slash + 1);
  }
}

bool names_node(std::string_view name) {
  return name == ".zgroup" || name == ".zarray" || name == "zarr.json" || name == ".zmetadata";
}

std::string join_keys(const std::string& prefix, const std::string& key) {
  return prefix.empty() ? key : prefix + "/" + key;
}

}  // namespace npyfs
