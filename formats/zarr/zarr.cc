// SPDX-License-Identifier: Apache-2.0

#include "formats/zarr/zarr.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "formats/bytes/error.h"
#include "formats/bytes/paths.h"
#include "formats/bytes/storage.h"
#include "formats/bytes/zip.h"
#include "formats/zarr/hierarchy.h"
#include "formats/zarr/zip_store.h"

namespace npyfs {

namespace {

constexpr std::array<std::string_view, 4> kMetadataNames = {"zarr.json", ".zgroup", ".zarray",
                                                            ".zmetadata"};

bool has_metadata(const Storage& storage, const std::string& prefix) {
  return std::any_of(kMetadataNames.begin(), kMetadataNames.end(), [&](std::string_view name) {
    return storage.has_file(join_keys(prefix, name));
  });
}

// Older writers leave out the metadata of groups, that of the root too.
bool child_has_metadata(const Storage& storage) {
  try {
    const std::vector<Storage::Entry> entries = storage.list("");
    return std::any_of(entries.begin(), entries.end(), [&](const Storage::Entry& entry) {
      return entry.kind == Storage::Kind::kFolder && has_metadata(storage, entry.name);
    });
  } catch (const Error&) {
    return false;  // what cannot be listed is not ours to report
  }
}

bool zip_has_metadata(const ByteSource& archive) {
  std::array<std::byte, 4> head{};
  if (archive.nbytes() < head.size()) {
    return false;
  }
  archive.read_at(0, head);
  if (!is_zip(head)) {
    return false;
  }
  try {
    const ZipDirectory directory(archive);
    for (std::uint64_t i = 0; i < directory.size(); ++i) {
      const std::string_view name = directory[i].name;
      const std::string_view last = name.substr(name.find_last_of('/') + 1);
      for (const std::string_view metadata : kMetadataNames) {
        if (last == metadata) {
          return true;
        }
      }
    }
  } catch (const Error&) {
    // Whoever opens it says what is wrong.
  }
  return false;
}

bool recognises(const Location& location) {
  if (location.is_directory) {
    const StoragePtr storage = open_storage(location.path);
    return has_metadata(*storage, "") || (location.named && child_has_metadata(*storage));
  }
  return zip_has_metadata(*location.source);
}

StorePtr open_store(const Location& location, OpenContext& context) {
  if (location.is_directory) {
    return open_hierarchy(context.storage(location.path), context);
  }
  return open_hierarchy(open_zip_store(location.source, context), context);
}

}  // namespace

const Format kZarr = {
    .name = "zarr", .extensions = {"zip"}, .recognises = recognises, .open_store = open_store};

}  // namespace npyfs
