// SPDX-License-Identifier: Apache-2.0
//
// A file of which nothing was noted, since a store may have more of them than there is memory to
// remember, counts as changed where it was written, replaced or moved here after the store was
// opened: the kernel notes that moment (ctime), and nobody else can set it.

#include <fmt/format.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <ctime>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

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

void require_older(const RegularFile& file, std::int64_t moment_ns, const std::string& name) {
  if (file.changed_at_ns() > moment_ns) {
    throw changed_error(name);
  }
}

using FilePtr = std::shared_ptr<const RegularFile>;

// Files that were read from last, open: chunks are read in parts, one after the other. Any thread.
class OpenFiles {
 public:
  // Null: it is not among them.
  FilePtr find(const std::string& path) const {
    const Entry& entry = place_of(path);
    const std::lock_guard lock(mutex_);
    return entry.path == path ? entry.file : nullptr;
  }

  void add(const std::string& path, FilePtr file) const {
    Entry other{path, std::move(file)};  // then what was there, closed without the lock
    Entry& entry = place_of(path);
    const std::lock_guard lock(mutex_);
    std::swap(entry, other);
  }

 private:
  struct Entry {
    std::string path;
    FilePtr file;
  };

  // Each path has one place, which is the last one's that was put there.
  Entry& place_of(const std::string& path) const {
    return places_[std::hash<std::string>()(path) % places_.size()];
  }

  // Of places. (std::atomic of a shared_ptr is a race in libstdc++ 12.)
  mutable std::mutex mutex_;
  // A reader or two for each of a machine's cores; few descriptors.
  mutable std::array<Entry, 32> places_;
};

class FileValue : public StoredValue {
 public:
  // `path` led to `file`. Throws kChanged.
  FileValue(FilePtr file, std::string path, std::string name, const FileIdentity* noted,
            std::int64_t opened_at_ns)
      : file_(std::move(file)),
        path_(std::move(path)),
        name_(std::move(name)),
        noted_(noted),
        opened_at_ns_(opened_at_ns) {}

  std::uint64_t nbytes() const override { return file_->nbytes(); }

  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    const std::size_t n = file_->read(offset, out);
    require_unchanged();
    if (n < out.size()) {
      throw corrupt_at(
          name_, offset,
          fmt::format("{} bytes are needed, {} are there; the file is cut short", out.size(), n));
    }
  }

 private:
  // The file may have been opened long ago: its path says what is there now.
  void require_unchanged() const {
    if (noted_ == nullptr) {
      require_older(*file_, opened_at_ns_, name_);
      return;
    }
    const auto now = FileIdentity::of(path_);
    if (!now) {
      throw system_error(name_, "look at", errno);
    }
    if (*now != *noted_) {
      throw changed_error(name_);
    }
  }

  FilePtr file_;
  std::string path_;
  std::string name_;
  const FileIdentity* noted_;
  std::int64_t opened_at_ns_;
};

class DirectoryStore : public KeyStore {
 public:
  DirectoryStore(const std::string& path, bool confine)
      : folder_(path, confine), opened_at_ns_(take_time()) {}

  std::string name_of(const std::string& key) const override { return folder_.path_of(key); }

  std::unique_ptr<StoredValue> open(const std::string& key,
                                    const FileIdentity* noted) const override {
    const std::string path = folder_.absolute_path_of(key);
    std::string name = name_of(key);
    FilePtr file = noted != nullptr ? open_files_.find(path) : nullptr;
    if (file == nullptr) {
      file = open_file(key, noted);
    }
    if (file == nullptr) {
      return nullptr;
    }
    return std::make_unique<FileValue>(std::move(file), path, std::move(name), noted,
                                       opened_at_ns_);
  }

  std::optional<FileIdentity> identify(const std::string& key) const override {
    return FileIdentity::of(folder_.absolute_path_of(key));
  }

  SourcePtr open_source(const std::string& key) const override {
    try {
      return folder_.open_on_demand(key);
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
    return ::stat(folder_.absolute_path_of(prefix).c_str(), &status) == 0 &&
           S_ISDIR(status.st_mode);
  }

 private:
  // Where it is the folder that forbids it, nobody knows whether there is such a key.
  void require_searchable(const std::string& key) const {
    struct stat status {};
    if (::stat(folder_.absolute_path_of(key).c_str(), &status) != 0 && errno == EACCES) {
      const std::size_t slash = key.find_last_of('/');
      throw system_error(name_of(slash == std::string::npos ? "" : key.substr(0, slash)),
                         "look into the folder", EACCES);
    }
  }

  // Null where there is none, nor was any. Throws kChanged.
  FilePtr open_file(const std::string& key, const FileIdentity* noted) const {
    auto opened = folder_.open_regular(key);
    if (!opened) {
      if (noted != nullptr ? noted->exists() : may_have_gone(key)) {
        throw changed_error(name_of(key));
      }
      return nullptr;
    }
    const auto file = std::make_shared<const RegularFile>(*std::move(opened));
    if (noted == nullptr) {
      require_older(*file, opened_at_ns_, name_of(key));
      return file;
    }
    if (file->identity() != *noted) {
      throw changed_error(name_of(key));
    }
    open_files_.add(folder_.absolute_path_of(key), file);
    return file;
  }

  // Whether a key that is not there may have been when the store was opened: the nearest directory
  // that is there notes when something in it last came or went.
  bool may_have_gone(const std::string& key) const {
    for (std::size_t slash = key.find_last_of('/');; slash = key.find_last_of('/', slash - 1)) {
      const std::string folder =
          folder_.absolute_path_of(slash == std::string::npos ? "" : key.substr(0, slash));
      struct stat status {};
      if (::stat(folder.c_str(), &status) == 0) {
        return to_ns(status.st_mtim) > opened_at_ns_;
      }
      if (slash == std::string::npos || slash == 0 || (errno != ENOENT && errno != ENOTDIR)) {
        return true;
      }
    }
  }

  Folder folder_;
  std::int64_t opened_at_ns_;
  OpenFiles open_files_;
};

}  // namespace

std::shared_ptr<const KeyStore> open_directory_store(const std::string& path, bool confine) {
  return std::make_shared<DirectoryStore>(path, confine);
}

}  // namespace npyfs
