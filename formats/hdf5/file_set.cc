// SPDX-License-Identifier: Apache-2.0

#include "formats/hdf5/file_set.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "formats/bytes/error.h"
#include "formats/bytes/local_storage.h"
#include "formats/bytes/paths.h"

namespace npyfs {

namespace {

constexpr std::size_t kMostFiles = 10'000;
// Each linked file has a child of its own, which starts again when it is needed.
constexpr std::size_t kMostChildren = 64;

// To open all, beside Patience::open: for each file, and for each MiB of them, since texts are read
// through.
constexpr std::chrono::seconds kOpenTimeOfFile{1};
constexpr std::chrono::milliseconds kOpenTimeOfMiB{100};

std::string allowed_path(const LinkedFile& from, const std::string& name) {
  if (name.empty() || name.starts_with('/') || has_part(name, "..") ||
      name.find('\0') != std::string::npos) {
    throw Error(ErrorKind::kUnsupported,
                fmt::format("it leads to '{}', expected a file below the file's own folder",
                            printable(name)));
  }
  return normal_path(from.folder->name_of(name));
}

}  // namespace

FileSet::FileSet(const Patience& patience)
    : patience_(patience), end_(patience.now() + patience.open) {}

FileSet::~FileSet() {
  for (const auto& [path, file] : files_) {
    file->process->rest();
  }
}

LinkedFile& FileSet::add(const std::string& path, const SourcePtr& source) {
  return add_absolute(absolute_path_of(path), source);
}

LinkedFile& FileSet::add_absolute(const std::string& absolute, const SourcePtr& source) {
  if (files_.size() >= kMostFiles) {
    is_full_ = true;
    throw file_error(ErrorKind::kTooLarge, source->name(),
                     fmt::format("more than {} files are linked to", kMostFiles));
  }
  if (files_.size() % kMostChildren == 0) {
    for (const auto& [path, other] : files_) {
      other->process->rest();
    }
  }
  end_ += kOpenTimeOfFile + kOpenTimeOfMiB * (source->nbytes() >> 20);
  const std::string folder = folder_of_path(absolute);
  auto file =
      std::make_unique<LinkedFile>(LinkedFile{std::make_shared<Hdf5Process>(source, patience_),
                                              open_storage(folder, Confinement({folder}))});
  return *files_.emplace(absolute, std::move(file)).first->second;
}

LinkedFile& FileSet::find(LinkedFile& from, const std::string& name) {
  if (name == ".") {
    return from;
  }
  const std::string absolute = allowed_path(from, name);
  const auto known = files_.find(absolute);
  return known != files_.end() ? *known->second : add_absolute(absolute, open_raw(from, name));
}

SourcePtr FileSet::open_raw(LinkedFile& from, const std::string& name) {
  allowed_path(from, name);
  try {
    return from.folder->open(name);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kUnsupported) {
      throw;
    }
    throw Error(ErrorKind::kUnsupported,
                fmt::format("it leads to '{}', expected a regular file below the file's own "
                            "folder",
                            printable(name)));
  }
}

}  // namespace npyfs
