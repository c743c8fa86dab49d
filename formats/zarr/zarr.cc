// SPDX-License-Identifier: Apache-2.0

#include "formats/zarr/zarr.h"

#include <array>
#include <filesystem>
#include <string_view>

#include "formats/bytes/error.h"
#include "formats/bytes/zip.h"
#include "formats/zarr/hierarchy.h"

namespace npyfs {

namespace {

constexpr std::array<std::string_view, 4> kMetadataNames = {"zarr.json", ".zgroup", ".zarray",
                                                            ".zmetadata"};

bool has_metadata(const std::string& directory) {
  std::error_code error;
  for (const std::string_view name : kMetadataNames) {
    if (std::filesystem::is_regular_file(directory + "/" + std::string(name), error)) {
      return true;
    }
  }
  return false;
}

// Older writers leave out the metadata of groups, that of the root too.
bool child_has_metadata(const std::string& directory) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
    if (entry.is_directory(error) && has_metadata(entry.path().string())) {
      return true;
    }
  }
  return false;
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
    return has_metadata(location.path) || (location.named && child_has_metadata(location.path));
  }
  return zip_has_metadata(*location.source);
}

StorePtr open_store(const Location& location, OpenContext& context) {
  if (location.is_directory) {
    return open_hierarchy(open_directory_store(location.path, context.confine), context);
  }
  return open_hierarchy(open_zip_store(location.source, context), context);
}

}  // namespace

const Format kZarr = {
    .name = "zarr", .extensions = {"zip"}, .recognises = recognises, .open_store = open_store};

}  // namespace npyfs
