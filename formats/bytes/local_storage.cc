// SPDX-License-Identifier: Apache-2.0
//
// A file of which nothing was noted, since a store may have more of them than there is memory to
// remember, counts as changed where it was written, replaced or moved here after the moment that
// the reader names: the kernel notes that (ctime), and nobody else can set it.

#include "formats/bytes/local_storage.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>
#include <filesystem>
#include <functional>
#include <mutex>
#include <utility>

#include "formats/bytes/error.h"
#include "formats/bytes/paths.h"
#include "formats/bytes/regular_file.h"

namespace npyfs {

namespace {

std::int64_t now_ns(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return to_ns(now);
}

using FilePtr = std::shared_ptr<const RegularFile>;

// Files that were read from last: values are read in parts, one after the other. Any thread.
class LastFiles {
 public:
  // Null: it is not among them.
  FilePtr find(const std::string& path, const Identity& identity) const {
    const FilePtr& place = place_of(path);
    const std::lock_guard lock(mutex_);
    const bool is_it = place != nullptr && place->path() == path && place->identity() == identity;
    return is_it ? place : nullptr;
  }

  // `file` becomes what was there before, which is closed without the lock.
  void add(FilePtr file) const {
    FilePtr& place = place_of(file->path());
    const std::lock_guard lock(mutex_);
    std::swap(place, file);
  }

 private:
  // Each path has one place, which is the last one's that was put there.
  FilePtr& place_of(const std::string& path) const {
    return places_[std::hash<std::string>()(path) % places_.size()];
  }

  // Guards places_. (std::atomic of a shared_ptr is a race in libstdc++ 12.)
  mutable std::mutex mutex_;
  // A reader or two for each of a machine's cores.
  mutable std::array<FilePtr, 32> places_;
};

class FileValue : public StoredValue {
 public:
  // `file` was as expected when it was opened.
  FileValue(FilePtr file, const Expected& expected) : file_(std::move(file)), expected_(expected) {}

  std::uint64_t nbytes() const override { return file_->nbytes(); }

  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    const std::size_t n = file_->read(offset, out);
    require_unchanged();
    if (n < out.size()) {
      throw corrupt_at(
          file_->name(), offset,
          fmt::format("{} bytes are needed, {} are there; the file is cut short", out.size(), n));
    }
  }

 private:
  // The file may have been opened long ago: its path says what is there now.
  void require_unchanged() const {
    if (expected_.identity != nullptr) {
      file_->require_unchanged();
    } else if (file_->changed_at_ns() > expected_.since_ns) {
      throw changed_error(file_->name(), "has changed");
    }
  }

  FilePtr file_;
  Expected expected_;
};

class LocalStorage : public Storage {
 public:
  LocalStorage(std::string folder, std::string absolute, Confinement confinement)
      : folder_(std::move(folder)),
        absolute_(std::move(absolute)),
        confinement_(std::move(confinement)) {}

  std::string name_of(const std::string& key) const override { return join_keys(folder_, key); }

  Kind kind_of(const std::string& key) const override {
    const std::string path = path_of(key);
    struct stat about;
    if (::stat(path.c_str(), &about) == 0) {
      return kind_of(about);
    }
    if (errno == EACCES && key.find('/', 1) != std::string::npos) {
      throw system_error(name_of(folder_of_path(key)), "look into the folder", EACCES);
    }
    if (errno != ENOENT && errno != ENOTDIR) {
      throw system_error(name_of(key), "open", errno);
    }
    return ::lstat(path.c_str(), &about) == 0 ? Kind::kDeadLink : Kind::kNone;
  }

  std::vector<Entry> list(const std::string& prefix) const override {
    const std::string name = name_of(prefix);
    const std::string path = path_of(prefix);
    const int fd = open_descriptor(
        [&] { return ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC); });
    const std::unique_ptr<DIR, int (*)(DIR*)> directory(fd < 0 ? nullptr : ::fdopendir(fd),
                                                        ::closedir);
    if (!directory) {
      throw system_error(name, "list", errno);
    }
    confinement_.require_within(fd, name);
    std::vector<Entry> entries;
    errno = 0;
    // What the folder itself does not say is looked at later.
    std::vector<std::size_t> untold;
    while (const dirent* entry = ::readdir(directory.get())) {
      if (entry->d_name[0] != '.') {
        const bool is_told = entry->d_type == DT_REG || entry->d_type == DT_DIR;
        if (!is_told) {
          untold.push_back(entries.size());
        }
        entries.push_back({entry->d_name, entry->d_type == DT_DIR ? Kind::kFolder : Kind::kFile});
      }
      errno = 0;
    }
    if (errno != 0) {
      throw system_error(name, "list", errno);
    }
    for (const std::size_t i : untold) {
      Entry& entry = entries[i];
      struct stat about;
      entry.kind =
          ::fstatat(fd, entry.name.c_str(), &about, 0) == 0 ? kind_of(about) : Kind::kDeadLink;
    }
    std::sort(entries.begin(), entries.end(),
              [](const Entry& a, const Entry& b) { return a.name < b.name; });
    return entries;
  }

  StoragePtr below(const std::string& prefix) const override {
    confinement_.require_path_within(path_of(prefix), name_of(prefix));
    return std::make_shared<LocalStorage>(name_of(prefix), path_of(prefix), confinement_);
  }

  std::optional<Identity> identify(const std::string& key) const override {
    return identity_of(path_of(key), confinement_);
  }

  // The kernel stamps files by a clock that moves in steps of some milliseconds: one step is
  // waited for.
  std::int64_t take_time() const override {
    const std::int64_t moment = now_ns(CLOCK_REALTIME);
    for (int i = 0; i < 200 && now_ns(CLOCK_REALTIME_COARSE) <= moment; ++i) {
      const timespec pause{0, 200'000};
      ::nanosleep(&pause, nullptr);
    }
    return moment;
  }

  SourcePtr open(const std::string& key, const std::string& name) const override {
    return FileSource::open(path_of(key), name.empty() ? name_of(key) : name, confinement_);
  }

  // A file is seldom something else, and to open it is to look at it.
  Found look_up(const std::string& key) const override {
    try {
      return {Kind::kFile, open(key, {})};
    } catch (const Error&) {
      const Kind kind = kind_of(key);
      if (kind == Kind::kFile) {
        throw;
      }
      return {kind, nullptr};
    }
  }

  std::unique_ptr<StoredValue> open_value(const std::string& key,
                                          const Expected& expected) const override {
    const std::string path = path_of(key);
    FilePtr file =
        expected.identity != nullptr ? last_files_.find(path, *expected.identity) : nullptr;
    if (file == nullptr) {
      file = open_expected(key, path, expected);
    }
    return file != nullptr ? std::make_unique<FileValue>(std::move(file), expected) : nullptr;
  }

 private:
  static Kind kind_of(const struct stat& about) {
    return S_ISDIR(about.st_mode)   ? Kind::kFolder
           : S_ISREG(about.st_mode) ? Kind::kFile
                                    : Kind::kOther;
  }

  std::string path_of(const std::string& key) const {
    return folder_.empty() && key.starts_with('/') ? key : join_keys(absolute_, key);
  }

  // Null where there is none, nor was any. Throws kChanged.
  FilePtr open_expected(const std::string& key, const std::string& path,
                        const Expected& expected) const {
    FilePtr file = RegularFile::open(path, name_of(key), confinement_);
    const Identity* identity = expected.identity;
    if (identity == nullptr) {
      OpenedFiles::note(file != nullptr ? file->identity() : Identity(), path);
    }
    if (file == nullptr) {
      if (identity != nullptr ? identity->exists() : may_have_gone(key, expected.since_ns)) {
        throw changed_error(name_of(key), "has changed");
      }
      return nullptr;
    }
    if (identity == nullptr) {
      if (file->changed_at_ns() > expected.since_ns) {
        throw changed_error(name_of(key), "has changed");
      }
      return file;
    }
    if (file->identity() != *identity) {
      throw changed_error(name_of(key), "has changed");
    }
    last_files_.add(file);
    return file;
  }

  // Whether a key that is not there may have been at `since_ns`: the nearest folder that is there
  // notes when something in it last came or went.
  bool may_have_gone(std::string key, std::int64_t since_ns) const {
    while (!key.empty() && key != "/") {
      key = folder_of_path(key);
      struct stat status;
      if (::stat(path_of(key).c_str(), &status) == 0) {
        return to_ns(status.st_mtim) > since_ns;
      }
      if (errno != ENOENT && errno != ENOTDIR) {
        return true;
      }
    }
    return true;
  }

  std::string folder_;    // as the user wrote it
  std::string absolute_;  // the daemon changes its working directory
  Confinement confinement_;
  LastFiles last_files_;
};

}  // namespace

StoragePtr open_local_storage(std::string folder, Confinement confinement) {
  while (folder.size() > 1 && folder.ends_with('/')) {
    folder.pop_back();
  }
  std::string absolute = absolute_path_of(folder);
  return std::make_shared<LocalStorage>(std::move(folder), std::move(absolute),
                                        std::move(confinement));
}

std::string absolute_path_of(const std::string& path) {
  if (path.starts_with('/')) {
    return path;
  }
  std::error_code gone;
  const std::filesystem::path working_directory = std::filesystem::current_path(gone);
  if (gone) {
    return "/dev/null/" + path;  // no such place: nothing is below a folder that was removed
  }
  return path.empty() ? working_directory.string() : (working_directory / path).string();
}

}  // namespace npyfs
