// SPDX-License-Identifier: Apache-2.0

#include "kept/eviction.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <string_view>

#include "formats/bytes/error.h"
#include "formats/bytes/regular_file.h"
#include "kept/block_map.h"
#include "kept/kept_folder.h"

namespace npyfs {

namespace {

constexpr std::string_view kUnfinished = ".new";

std::int64_t now_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return to_ns(now);
}

std::uint64_t taken_nbytes(const std::optional<struct stat>& status) {
  constexpr std::uint64_t kUnit = 512;  // of st_blocks, whatever the file system
  return status ? static_cast<std::uint64_t>(status->st_blocks) * kUnit : 0;
}

// One array that may have to go.
class Victim {
 public:
  Victim(const DiskFolder& disk, const KeptFiles& files, const DiskFile& map)
      : disk_(disk), files_(files), map_file_(map) {}

  // How many bytes that gave back.
  std::uint64_t evict(std::uint64_t nbytes, std::chrono::seconds spared_after_use) {
    const WriterLock lock(map_file_, std::chrono::milliseconds(0));
    if (!lock || !disk_.leads_to(map_name(files_.name), map_file_)) {
      return 0;
    }
    const bool is_open = map_file_.is_locked_by_others(DiskFile::Lock::kUser);
    const bool is_complete = disk_.look(complete_name(files_.name)).has_value();
    const bool is_in_use = is_open && now_ns() - files_.used_at_ns() <
                                          std::chrono::nanoseconds(spared_after_use).count();
    // What somebody has open takes its room on the disk until he lets go of it.
    if (is_complete ? is_open : is_in_use) {
      return 0;
    }
    if (!is_complete) {
      const std::uint64_t freed = punch_last(nbytes);
      if (freed > 0 || is_open) {
        return freed;
      }
    }
    remove_kept_files(disk_, files_.name);
    return files_.disk_nbytes();
  }

 private:
  // Gives the last blocks that are there back to the disk. Returns 0 if there are none, or if the
  // file system cannot do it.
  std::uint64_t punch_last(std::uint64_t nbytes) {
    const std::optional<BlockMap> map = read_map();
    if (!map || !files_.part) {
      return 0;
    }
    const DiskFile part = disk_.open(part_name(files_.name), O_RDWR);
    const std::uint64_t before = taken_nbytes(part.look());
    std::vector<bool> there = map->blocks();
    std::uint64_t going = 0;
    for (std::uint64_t block = map->block_count(); block > 0 && going < nbytes; --block) {
      if (there[block - 1]) {
        there[block - 1] = false;
        going += map->block_nbytes(block - 1);
        map->clear(block - 1);
      }
    }
    // Before any byte is gone, so that a reader who has read zeros can tell.
    map->set_generation(map->generation() + 1);
    // Not only those blocks: what a process wrote that died before it said so is of no use.
    for (std::uint64_t block = 0; block < map->block_count(); ++block) {
      if (!there[block] && !part.punch(block * kKeptBlockNbytes, kKeptBlockNbytes)) {
        return 0;
      }
    }
    const std::uint64_t after = taken_nbytes(part.look());
    return before > after ? before - after : 0;
  }

  std::optional<BlockMap> read_map() const {
    return BlockMap::read(disk_.open(map_name(files_.name), O_RDWR));
  }

  const DiskFolder& disk_;
  const KeptFiles& files_;
  const DiskFile& map_file_;
};

// A file that another process has removed meanwhile, or that is none of ours, is no reason to stop.
std::uint64_t evict_one(const DiskFolder& disk, const KeptFiles& files, std::uint64_t nbytes,
                        std::chrono::seconds spared_after_use) {
  try {
    const DiskFile map = disk.open(map_name(files.name), O_RDWR);
    return Victim(disk, files, map).evict(nbytes, spared_after_use);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kIo) {
      throw;
    }
    return 0;
  }
}

bool is_unfinished(std::string_view file_name) {
  return file_name.ends_with(kUnfinished) &&
         is_kept_name(file_name.substr(0, std::min(file_name.size(), KeptKey::kNameLength)));
}

// Whoever makes it has its lock.
void remove_unfinished(const DiskFolder& disk, const std::string& file_name) {
  try {
    const DiskFile file = disk.open(file_name, O_RDWR);
    if (file.try_lock(DiskFile::Lock::kWriter)) {
      disk.unlink(file_name);
    }
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kIo) {
      throw;
    }
  }
}

}  // namespace

std::uint64_t KeptFiles::disk_nbytes() const {
  return taken_nbytes(map) + taken_nbytes(part) + taken_nbytes(complete);
}

std::int64_t KeptFiles::used_at_ns() const { return map ? to_ns(map->st_mtim) : 0; }

std::vector<KeptFiles> find_kept_files(const DiskFolder& disk) {
  std::map<std::string, KeptFiles> found;
  for (const std::string& file_name : disk.names()) {
    const std::string name = file_name.substr(0, KeptKey::kNameLength);
    const bool is_map = file_name == map_name(name);
    const bool is_part = file_name == part_name(name);
    if (!is_kept_name(name) || (!is_map && !is_part && file_name != complete_name(name))) {
      continue;
    }
    KeptFiles& files = found[name];
    files.name = name;
    std::optional<struct stat>& status =
        is_map ? files.map : (is_part ? files.part : files.complete);
    status = disk.look(file_name);
  }
  std::vector<KeptFiles> all;
  all.reserve(found.size());
  for (auto& [name, files] : found) {
    all.push_back(files);
  }
  return all;
}

std::uint64_t disk_nbytes(const std::vector<KeptFiles>& files) {
  std::uint64_t nbytes = 0;
  for (const KeptFiles& one : files) {
    nbytes += one.disk_nbytes();
  }
  return nbytes;
}

std::uint64_t evict(const DiskFolder& disk, std::uint64_t nbytes, const std::string& except,
                    std::chrono::seconds spared_after_use, std::int64_t spared_since_ns) {
  std::vector<KeptFiles> files = find_kept_files(disk);
  std::stable_sort(files.begin(), files.end(), [](const KeptFiles& a, const KeptFiles& b) {
    return a.used_at_ns() < b.used_at_ns();
  });
  std::uint64_t freed = 0;
  for (const KeptFiles& one : files) {
    if (freed >= nbytes) {
      break;
    }
    if (one.name != except && one.map && one.used_at_ns() < spared_since_ns) {
      freed += evict_one(disk, one, nbytes - freed, spared_after_use);
    }
  }
  return freed;
}

void clear_leftovers(const DiskFolder& disk) {
  for (const std::string& file_name : disk.names()) {
    if (is_unfinished(file_name)) {
      remove_unfinished(disk, file_name);
    }
  }
  for (const KeptFiles& files : find_kept_files(disk)) {
    // The map is made first and goes last. It may have come since the folder was listed.
    if (!files.map && !disk.look(map_name(files.name))) {
      remove_kept_files(disk, files.name);
    }
  }
}

std::string unfinished_map_name(const std::string& name, std::uint64_t number) {
  return fmt::format("{}.{}.{}.{}{}", map_name(name), ::getpid(), now_ns(), number, kUnfinished);
}

}  // namespace npyfs
