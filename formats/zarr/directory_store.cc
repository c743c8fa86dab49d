// SPDX-License-Identifier: Apache-2.0
//
// A file of which nothing was noted, since a store may have more of them than there is memory to
// remember, counts as changed where it was written, replaced or moved here after the store was
// opened: the kernel notes that moment (ctime), and nobody else can set it.

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>
#include <ctime>

#include "formats/bytes/error.h"
#include "formats/bytes/folder.h"
#include "formats/bytes/regular_file.h"
#include "formats/zarr/key_store.h"

namespace npyfs {

namespace {

std::int64_t now_ns(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return to_ns(now);
}

// A moment that no file has been changed after, and every later change is after. The kernel stamps
// files by a clock that moves in steps of some milliseconds: one step is waited for.
std::int64_t take_time() {
  const std::int64_t moment = now_ns(CLOCK_REALTIME);
  for (int i = 0; i < 200 && now_ns(CLOCK_REALTIME_COARSE) <= moment; ++i) {
    const timespec pause{0, 200'000};
    ::nanosleep(&pause, nullptr);
  }
  return moment;
}

Error changed_error(const std::string& name) {
  return file_error(ErrorKind::kChanged, name,
                    "it has changed since it was mounted; unmount and mount again");
}

class FileValue : public StoredValue {
 public:
  // Throws kChanged.
  FileValue(RegularFile file, std::string name, const FileIdentity* noted,
            std::int64_t opened_at_ns)
      : file_(std::move(file)), name_(std::move(name)), noted_(noted), opened_at_ns_(opened_at_ns) {
    require_unchanged();
  }

  std::uint64_t nbytes() const override { return file_.nbytes(); }

  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    const std::size_t n = file_.read(offset, out);
    require_unchanged();
    if (n < out.size()) {
      throw corrupt_at(
          name_, offset,
          fmt::format("{} bytes are needed, {} are there; the file is cut short", out.size(), n));
    }
  }

 private:
  void require_unchanged() const {
    if (noted_ != nullptr ? file_.identity() != *noted_ : file_.changed_at_ns() > opened_at_ns_) {
      throw changed_error(name_);
    }
  }

  RegularFile file_;
  std::string name_;
  const FileIdentity* noted_;
  std::int64_t opened_at_ns_;
};

class DirectoryStore : public KeyStore {
 public:
  DirectoryStore(const std::string& path, bool confine)
      : folder_(path, confine),
        root_(absolute_root(folder_.path())),
        confined_(confine),
        opened_at_ns_(take_time()) {}

  std::string name_of(const std::string& key) const override { return folder_.path_of(key); }

  std::unique_ptr<StoredValue> open(const std::string& key,
                                    const FileIdentity* noted) const override {
    if (confined_) {
      folder_.require_allowed(key);
    }
    std::string name = name_of(key);
    auto file = RegularFile::open(root_ + "/" + key, name);
    if (!file) {
      if (noted != nullptr ? noted->exists() : may_have_gone(key)) {
        throw changed_error(name);
      }
      return nullptr;
    }
    return std::make_unique<FileValue>(*std::move(file), std::move(name), noted, opened_at_ns_);
  }

  std::optional<FileIdentity> identify(const std::string& key) const override {
    return FileIdentity::of(root_ + "/" + key);
  }

  SourcePtr open_source(const std::string& key) const override {
    try {
      folder_.require_allowed(key);
      return FileSource::open(root_ + "/" + key, name_of(key), FileSource::Descriptor::kOnDemand);
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::kNotFound) {
        return nullptr;
      }
      require_searchable(key);
      throw;
    }
  }

  std::vector<std::string> children(const std::string& prefix) const override {
    std::vector<std::string> names;
    for (const Folder::Entry& entry : folder_.list(prefix)) {
      const std::string path = prefix.empty() ? entry.name : prefix + "/" + entry.name;
      if (entry.kind == Folder::Entry::Kind::kDirectory && !folder_.goes_round(path)) {
        names.push_back(entry.name);
      }
    }
    return names;
  }

  bool is_folder(const std::string& prefix) const override {
    struct stat status {};
    return ::stat((root_ + "/" + prefix).c_str(), &status) == 0 && S_ISDIR(status.st_mode);
  }

 private:
  // Where it is the folder that forbids it, nobody knows whether there is such a key.
  void require_searchable(const std::string& key) const {
    struct stat status {};
    if (::stat((root_ + "/" + key).c_str(), &status) != 0 && errno == EACCES) {
      const std::size_t slash = key.find_last_of('/');
      throw system_error(name_of(slash == std::string::npos ? "" : key.substr(0, slash)),
                         "look into the folder", EACCES);
    }
  }

  // Whether a key that is not there may have been when the store was opened: the nearest directory
  // that is there notes when something in it last came or went.
  bool may_have_gone(const std::string& key) const {
    for (std::size_t slash = key.find_last_of('/');; slash = key.find_last_of('/', slash - 1)) {
      const std::string folder =
          slash == std::string::npos ? root_ : root_ + "/" + key.substr(0, slash);
      struct stat status {};
      if (::stat(folder.c_str(), &status) == 0) {
        return to_ns(status.st_mtim) > opened_at_ns_;
      }
      if (slash == std::string::npos || slash == 0 || (errno != ENOENT && errno != ENOTDIR)) {
        return true;
      }
    }
  }

  // The daemon changes its working directory.
  static std::string absolute_root(const std::string& path) {
    char* const resolved = ::realpath(path.c_str(), nullptr);
    if (resolved == nullptr) {
      throw system_error(path, "open", errno);
    }
    std::string root(resolved);
    std::free(resolved);
    return root;
  }

  Folder folder_;
  std::string root_;
  bool confined_;
  std::int64_t opened_at_ns_;
};

}  // namespace

std::shared_ptr<const KeyStore> open_directory_store(const std::string& path, bool confine) {
  return std::make_shared<DirectoryStore>(path, confine);
}

}  // namespace npyfs
