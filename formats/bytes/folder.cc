// SPDX-License-Identifier: Apache-2.0

#include "formats/bytes/folder.h"

#include <dirent.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <utility>

#include "formats/bytes/error.h"

namespace npyfs {

namespace {

namespace fs = std::filesystem;

Folder::Entry::Kind kind_of(const std::string& path) {
  struct stat about;
  if (::stat(path.c_str(), &about) != 0) {
    return Folder::Entry::Kind::kOther;
  }
  return S_ISDIR(about.st_mode)   ? Folder::Entry::Kind::kDirectory
         : S_ISREG(about.st_mode) ? Folder::Entry::Kind::kFile
                                  : Folder::Entry::Kind::kOther;
}

std::size_t descriptor_budget() {
  rlimit limit{};
  constexpr std::size_t kMost = 100'000;
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) {
    return 100;
  }
  return std::min<std::size_t>(limit.rlim_cur / 2, kMost);
}

}  // namespace

Folder::Folder(std::string path, Confinement confinement,
               std::shared_ptr<std::size_t> kept_descriptors)
    : path_(std::move(path)),
      confinement_(std::move(confinement)),
      kept_descriptors_(std::move(kept_descriptors)) {
  while (path_.size() > 1 && path_.ends_with('/')) {
    path_.pop_back();
  }
  absolute_ = fs::absolute(path_).string();
}

Folder::Folder(std::string path, bool confine)
    : Folder(path, confine ? Confinement({path}) : Confinement(),
             std::make_shared<std::size_t>(0)) {}

std::string Folder::path_of(const std::string& below) const {
  return below.empty() ? path_ : path_ + "/" + below;
}

std::string Folder::absolute_path_of(const std::string& below) const {
  return below.empty() ? absolute_ : absolute_ + "/" + below;
}

std::vector<Folder::Entry> Folder::list(const std::string& below) const {
  const std::string name = path_of(below);
  const std::string path = absolute_path_of(below);
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(::opendir(path.c_str()), ::closedir);
  if (!directory) {
    throw system_error(name, "list", errno);
  }
  confinement_.require_within(::dirfd(directory.get()), name);
  std::vector<Entry> entries;
  errno = 0;
  while (const dirent* entry = ::readdir(directory.get())) {
    if (entry->d_name[0] != '.') {
      entries.push_back({entry->d_name, Entry::Kind::kOther});
    }
    errno = 0;
  }
  if (errno != 0) {
    throw system_error(name, "list", errno);
  }
  for (Entry& entry : entries) {
    entry.kind = kind_of(path + "/" + entry.name);
  }
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.name < b.name; });
  return entries;
}

bool Folder::goes_round(const std::string& below) const {
  struct stat own;
  if (::stat(absolute_path_of(below).c_str(), &own) != 0) {
    return false;
  }
  std::string above = below;
  while (!above.empty()) {
    const std::size_t slash = above.find_last_of('/');
    above.resize(slash == std::string::npos ? 0 : slash);
    struct stat about;
    if (::stat(absolute_path_of(above).c_str(), &about) == 0 && about.st_dev == own.st_dev &&
        about.st_ino == own.st_ino) {
      return true;
    }
  }
  return false;
}

SourcePtr Folder::open(const std::string& below) const {
  return open_one_of_many(confinement_, absolute_path_of(below), path_of(below),
                          *kept_descriptors_);
}

SourcePtr Folder::open_on_demand(const std::string& below) const {
  return FileSource::open(absolute_path_of(below), path_of(below),
                          FileSource::Descriptor::kOnDemand, confinement_);
}

std::optional<RegularFile> Folder::open_regular(const std::string& below) const {
  return RegularFile::open(absolute_path_of(below), path_of(below), confinement_);
}

SourcePtr open_one_of_many(const Confinement& confinement, const std::string& path,
                           const std::string& name, std::size_t& kept_descriptors) {
  const bool keep = kept_descriptors < descriptor_budget();
  SourcePtr source = FileSource::open(
      path, name, keep ? FileSource::Descriptor::kKept : FileSource::Descriptor::kOnDemand,
      confinement);
  kept_descriptors += keep ? 1 : 0;
  return source;
}

}  // namespace npyfs
