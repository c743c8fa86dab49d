// SPDX-License-Identifier: Apache-2.0

#include "formats/zarr/zip_store.h"

#include <fmt/format.h>

#include <functional>
#include <set>
#include <string_view>
#include <utility>

#include "formats/bytes/error.h"
#include "formats/bytes/paths.h"
#include "formats/bytes/zip_members.h"
#include "formats/bytes/zip_storage.h"
#include "formats/zarr/documents.h"
#include "formats/zarr/renamed_members.h"

namespace npyfs {

namespace {

using Warn = std::function<void(const std::string&)>;

bool is_folder(std::string_view member) { return member.ends_with('/'); }

void warn_of_refused(const ZipMembers& members, const Warn& warn) {
  std::uint64_t refused = 0;
  std::string_view first;
  for (std::uint64_t i = 0; i < members.size(); ++i) {
    const std::string_view name = members.directory()[i].name;
    if (!is_folder(name) && !is_key(name)) {
      first = refused++ == 0 ? name : first;
    }
  }
  if (refused > 0) {
    warn(fmt::format(
        "{}: member '{}'{} left out: its path is absolute or has an empty, '.' or '..' part",
        printable(members.archive()->name()), printable(first),
        refused > 1 ? fmt::format(" and {} more are", refused - 1) : std::string(" is")));
  }
}

// Written anew, or by a flipped bit of the same name as another one: this one, or that.
void warn_of_one_name(const ZipMembers& members, const Warn& warn) {
  const ZipDirectory& directory = members.directory();
  std::set<std::uint64_t> of_one_name;
  for (std::uint64_t i = 0; i < directory.size(); ++i) {
    if (const std::string_view name = directory[i].name;
        !is_folder(name) && is_key(name) && directory.replaced(i)) {
      of_one_name.insert({i, *directory.find(name)});
    }
  }
  RenamedMembers renamed;
  for (const std::uint64_t member : of_one_name) {
    renamed.look_at([&] { zip_data_offset(*members.archive(), directory[member]); });
  }
  renamed.tell("with the name of another one", warn);
}

// Many zip the folder rather than what is in it: the root is the deepest folder that holds all
// metadata. Stores beside each other are its groups.
std::string find_root(const std::vector<std::string>& keys) {
  std::string root;
  bool is_first = true;
  for (const std::string& key : keys) {
    const std::string folder = folder_of_path(key);
    if (!names_node(name_of_path(key))) {
      continue;
    }
    if (is_first) {
      root = folder;
      is_first = false;
    }
    while (!root.empty() && folder != root && !folder.starts_with(root + "/")) {
      root = folder_of_path(root);
    }
  }
  return root;
}

// Nobody asks for what does not lie in the root.
void warn_of_strays(const Storage& storage, const std::vector<std::string>& keys,
                    const std::string& root, const Warn& warn) {
  RenamedMembers renamed;
  for (const std::string& key : keys) {
    if (!root.empty() && !key.starts_with(root + "/")) {
      renamed.look_at([&] { storage.require_own_name(key); });
    }
  }
  renamed.tell("outside of the store", warn);
}

}  // namespace

StoragePtr open_zip_store(SourcePtr archive, OpenContext& context) {
  const auto members = std::make_shared<const ZipMembers>(std::move(archive));
  warn_of_one_name(*members, context.warn);
  warn_of_refused(*members, context.warn);
  const StoragePtr storage = open_zip_storage(members, *context.cache);
  const std::vector<std::string> keys = *storage->keys_below("");
  const std::string root = find_root(keys);
  warn_of_strays(*storage, keys, root, context.warn);
  return root.empty() ? storage : storage->below(root);
}

}  // namespace npyfs
