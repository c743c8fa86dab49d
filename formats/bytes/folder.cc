// SPDX-License-Identifier: Apache-2.0

#include "formats/bytes/folder.h"

#include <dirent.h>
#include <fmt/format.h>
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

}  // namespace

Folder::Folder(std::string path, bool confine)
    : path_(std::move(path)), descriptors_left_(descriptor_budget()) {
  while (path_.size() > 1 && path_.ends_with('/')) {
    path_.pop_back();
  }
  if (confine) {
    allowed_ = fs::canonical(path_).string();
  }
}

std::string Folder::path_of(const std::string& below) const {
  return below.empty() ? path_ : path_ + "/" + below;
}

std::vector<Folder::Entry> Folder::list(const std::string& below) const {
  const std::string path = path_of(below);
  require_allowed(below);
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(::opendir(path.c_str()), ::closedir);
  if (!directory) {
    throw system_error(path, "list", errno);
  }
  std::vector<Entry> entries;
  errno = 0;
  while (const dirent* entry = ::readdir(directory.get())) {
    if (entry->d_name[0] != '.') {
      entries.push_back({entry->d_name, Entry::Kind::kOther});
    }
    errno = 0;
  }
  if (errno != 0) {
    throw system_error(path, "list", errno);
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
  if (::stat(path_of(below).c_str(), &own) != 0) {
    return false;
  }
  std::string above = below;
  while (!above.empty()) {
    const std::size_t slash = above.find_last_of('/');
    above.resize(slash == std::string::npos ? 0 : slash);
    struct stat about;
    if (::stat(path_of(above).c_str(), &about) == 0 && about.st_dev == own.st_dev &&
        about.st_ino == own.st_ino) {
      return true;
    }
  }
  return false;
}

SourcePtr Folder::open(const std::string& below) {
  require_allowed(below);
  const std::string path = path_of(below);
  const bool keep = descriptors_left_ > 0;
  SourcePtr source = FileSource::open(
      path, path, keep ? FileSource::Descriptor::kKept : FileSource::Descriptor::kOnDemand);
  descriptors_left_ -= keep ? 1 : 0;
  return source;
}

void Folder::require_allowed(const std::string& below) const {
  if (allowed_.empty()) {
    return;
  }
  std::error_code error;
  const std::string real = fs::canonical(path_of(below), error).string();
  if (!error && !(real + "/").starts_with(allowed_ + "/")) {
    throw file_error(ErrorKind::kUnsupported, path_of(below),
                     fmt::format("the file lies outside of {}, expected it within as others may "
                                 "read this mount (allow_other); --allow-outside allows any",
                                 printable(allowed_)));
  }
}

std::size_t descriptor_budget() {
  rlimit limit{};
  constexpr std::size_t kMost = 100'000;
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) {
    return 100;
  }
  return std::min<std::size_t>(limit.rlim_cur / 2, kMost);
}

}  // namespace npyfs
