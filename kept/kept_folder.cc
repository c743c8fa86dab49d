// SPDX-License-Identifier: Apache-2.0

#include "kept/kept_folder.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <thread>

#include "kept/eviction.h"

namespace npyfs {

namespace {

// 1 / kFreeShare of a disk is left free.
constexpr std::uint64_t kFreeShare = 20;
// An array that another process makes, completes or removes at the same time is looked for again.
constexpr int kMostTries = 4;

const char kFolderLock[] = "lock";

std::int64_t steady_ns() {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

bool is_full(const Error& error) {
  return error.to_errno() == ENOSPC || error.to_errno() == EDQUOT;
}

}  // namespace

std::string map_name(const std::string& name) { return name + ".map"; }
std::string part_name(const std::string& name) { return name + ".npy.part"; }
std::string complete_name(const std::string& name) { return name + ".npy"; }

void remove_kept_files(const DiskFolder& disk, const std::string& name) {
  disk.unlink(complete_name(name));
  disk.unlink(part_name(name));
  disk.unlink(map_name(name));
}

WriterLock::WriterLock(const DiskFile& map, std::chrono::milliseconds wait) : map_(map) {
  const auto until = std::chrono::steady_clock::now() + wait;
  is_held_ = map_.try_lock(DiskFile::Lock::kWriter);
  while (!is_held_ && std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    is_held_ = map_.try_lock(DiskFile::Lock::kWriter);
  }
}

WriterLock::~WriterLock() {
  if (is_held_) {
    try {
      map_.unlock(DiskFile::Lock::kWriter);
    } catch (const Error&) {
      // It ends with the descriptor.
    }
  }
}

std::shared_ptr<KeptFolder> KeptFolder::open(const std::string& path, KeptOptions options) {
  return std::shared_ptr<KeptFolder>(new KeptFolder(path, std::move(options)));
}

KeptFolder::KeptFolder(const std::string& path, KeptOptions options)
    : disk_(path, options.access == KeptOptions::Access::kMakes ? DiskFolder::Missing::kIsMade
                                                                : DiskFolder::Missing::kIsRefused),
      options_(std::move(options)),
      is_read_only_(options_.access == KeptOptions::Access::kReads || !disk_.is_writable()) {
  if (is_read_only_) {
    return;
  }
  try {
    clear_leftovers(disk_);
  } catch (const Error& error) {
    note_failure(error);
  }
  most_nbytes_ = options_.most_nbytes.value_or(
      (disk_.space().free_nbytes + disk_nbytes(find_kept_files(disk_))) / 5 * 4);
}

std::shared_ptr<KeptArray> KeptFolder::open(const KeptKey& key, std::uint64_t nbytes,
                                            std::span<const std::byte> head) noexcept {
  return open({key, nbytes, head, !is_read_only_});
}

std::shared_ptr<KeptArray> KeptFolder::find(const KeptKey& key, std::uint64_t nbytes) noexcept {
  return open({key, nbytes, {}, false});
}

std::shared_ptr<KeptArray> KeptFolder::open(const Wanted& wanted) noexcept {
  try {
    std::shared_ptr<KeptArray> array;
    for (int tries = 0; tries < kMostTries; ++tries) {
      const Look look = try_open(wanted, array);
      if (look == Look::kOpened) {
        return array;
      }
      if (look == Look::kForeign && (is_read_only_ || !drop(wanted.key.name()))) {
        return nullptr;
      }
    }
  } catch (const Error& error) {
    note_failure(error);
  } catch (const std::exception&) {
    // No memory for it: it is not kept.
  }
  return nullptr;
}

KeptFolder::Look KeptFolder::try_open(const Wanted& wanted, std::shared_ptr<KeptArray>& array) {
  const std::string name = wanted.key.name();
  try {
    if (wanted.makes && !disk_.look(map_name(name)) && !make_map(wanted.key, wanted.nbytes)) {
      return Look::kNone;
    }
    std::optional<BlockMap> map =
        BlockMap::read(disk_.open(map_name(name), is_read_only_ ? O_RDONLY : O_RDWR));
    if (!map || map->key().text != wanted.key.text || map->array_nbytes() != wanted.nbytes) {
      return Look::kForeign;
    }
    const bool is_part = !disk_.look(complete_name(name));
    DiskFile data = is_part ? open_part(*map, name) : disk_.open(complete_name(name), O_RDONLY);
    if (!data.is_open()) {
      return Look::kNone;
    }
    if (static_cast<std::uint64_t>(data.look().st_size) != wanted.nbytes) {
      return Look::kForeign;
    }
    array =
        std::make_shared<KeptArray>(shared_from_this(), std::move(*map), std::move(data), is_part,
                                    std::vector<std::byte>(wanted.head.begin(), wanted.head.end()));
    return Look::kOpened;
  } catch (const Error& error) {
    switch (error.kind()) {
      case ErrorKind::kNotFound:
        return Look::kNone;
      case ErrorKind::kIo:
      case ErrorKind::kTooLarge:
        throw;
      default:
        return Look::kForeign;
    }
  }
}

// Under its name the map is whole from the first moment on. False where another process was faster,
// or took it for a leftover.
bool KeptFolder::make_map(const KeptKey& key, std::uint64_t nbytes) {
  const std::string unfinished = unfinished_map_name(key.name(), next_number_++);
  const DiskFile file = disk_.open(unfinished, O_RDWR | O_CREAT | O_EXCL);
  try {
    if (!file.try_lock(DiskFile::Lock::kWriter)) {
      return false;
    }
    file.write(0, BlockMap::head(key, nbytes));
    file.resize(BlockMap::nbytes(key, nbytes));
    const bool is_first = disk_.link(unfinished, map_name(key.name()));
    disk_.unlink(unfinished);
    return is_first;
  } catch (const Error&) {
    disk_.unlink(unfinished);
    throw;
  }
}

// Makes it where it is missing; not open where it became complete just now, or where another
// process has the lock.
DiskFile KeptFolder::open_part(const BlockMap& map, const std::string& name) {
  const bool is_there = disk_.look(part_name(name)).has_value();
  if (is_there && disk_.look(part_name(name))->st_size > 0) {
    return disk_.open(part_name(name), is_read_only_ ? O_RDONLY : O_RDWR);
  }
  if (is_read_only_) {
    return {};
  }
  const WriterLock lock(map.file(), options_.lock_wait);
  if (!lock || !disk_.leads_to(map_name(name), map.file()) || disk_.look(complete_name(name))) {
    return {};
  }
  DiskFile part = disk_.open(part_name(name), O_RDWR | O_CREAT);
  if (part.look().st_size == 0) {
    part.resize(map.array_nbytes());
  }
  return part;
}

bool KeptFolder::make_room(std::uint64_t nbytes, const std::string& except) noexcept {
  if (is_read_only_) {
    return false;
  }
  try {
    const auto lacking = [&] {
      const std::uint64_t wanted = disk_nbytes(find_kept_files(disk_)) + nbytes;
      const DiskFolder::Space space = disk_.space();
      const std::uint64_t free_wanted = space.nbytes / kFreeShare + nbytes;
      return std::max(wanted > most_nbytes_ ? wanted - most_nbytes_ : 0,
                      free_wanted > space.free_nbytes ? free_wanted - space.free_nbytes : 0);
    };
    if (lacking() == 0) {
      return true;
    }
    const DiskFile file = disk_.open(kFolderLock, O_RDWR | O_CREAT);
    const WriterLock lock(file, options_.lock_wait);
    if (!lock) {
      return false;
    }
    // Another process may have made room meanwhile.
    if (const std::uint64_t still = lacking(); still > 0) {
      counts_.evicted_nbytes +=
          evict(disk_, still, except, options_.spared_after_use, options_.spared_since_ns);
      if (lacking() > 0) {
        tell_once(told_full_,
                  fmt::format("{}: the cache is full, and what could go is in use; no more arrays "
                              "are kept until there is room",
                              printable(disk_.path())));
        return false;
      }
    }
    return true;
  } catch (const Error& error) {
    note_failure(error);
  } catch (const std::exception&) {
    // No memory to look for it.
  }
  return false;
}

bool KeptFolder::drop(const std::string& name) {
  try {
    const DiskFile map = disk_.open(map_name(name), O_RDWR);
    const WriterLock lock(map, options_.lock_wait);
    if (!lock) {
      return false;
    }
    if (disk_.leads_to(map_name(name), map)) {
      remove_kept_files(disk_, name);
    }
    return true;
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kIo) {
      throw;
    }
    // No file that could be locked.
    remove_kept_files(disk_, name);
    return true;
  }
}

void KeptFolder::note_failure(const Error& error) noexcept {
  paused_until_ns_ = steady_ns() + std::chrono::nanoseconds(options_.pause_after_failure).count();
  try {
    tell_once(is_full(error) ? told_full_ : told_failure_,
              fmt::format("{}; reads go on without the cache", error.what()));
  } catch (const std::exception&) {
    // No memory for a line.
  }
}

bool KeptFolder::is_paused() const { return steady_ns() < paused_until_ns_.load(); }

void KeptFolder::tell_once(std::atomic<bool>& told, const std::string& text) noexcept {
  if (!told.exchange(true)) {
    try {
      options_.tell(text);
    } catch (const std::exception&) {
      // Whoever listens could not.
    }
  }
}

}  // namespace npyfs
