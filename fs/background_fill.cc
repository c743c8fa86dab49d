// SPDX-License-Identifier: Apache-2.0

#include "fs/background_fill.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "fs/fill_tasks.h"
#include "fs/log.h"
#include "threads/quiet_thread.h"

namespace npyfs {

namespace {

constexpr std::uint64_t kMostCacheNbytes = std::uint64_t{256} << 20;
// A block of each is in memory, and those that wait to be written.
constexpr unsigned kMostThreads = 4;

}  // namespace

BackgroundFill::BackgroundFill(MountedFs& fs, const VerifiedRecords& verified)
    : fs_(fs),
      cache_(std::min(fs.cache.capacity_nbytes() / 4, kMostCacheNbytes), verified),
      fetcher_(cache_, verified) {
  for_each_array_file(
      fs_.tree, [this](Ino ino, const std::string& path, const std::shared_ptr<const File>& file) {
        if (why_not_kept(*file)) {
          return;
        }
        inos_.push_back(ino);
        tasks_.push_back({path, file->nbytes(),
                          [this, ino, path, file] { return fs_.kept->open(ino, path, *file); },
                          [this, ino, file](std::uint64_t offset, std::span<std::byte> out) {
                            read(ino, *file, offset, out);
                          }});
      });
  thread_ = start_quiet_thread([this] { run(); });
}

BackgroundFill::~BackgroundFill() {
  is_stopping_ = true;
  thread_.join();
}

void BackgroundFill::run() {
  const unsigned cores = std::max(1U, std::thread::hardware_concurrency());
  FillHooks hooks;
  hooks.progress = [this](const FillState& /*state*/) { return !is_stopping_; };
  hooks.on_end = [this](const FillResult& result) { note_end(result); };
  try {
    fill_arrays(tasks_, std::min(cores, kMostThreads), FillManners::kPatient, hooks);
  } catch (const std::exception& error) {
    log_warning(fmt::format("--fill ended: {}", error.what()));
  }
}

// A reader would be told the same, and find it in the list of what went wrong.
void BackgroundFill::read(Ino ino, const File& file, std::uint64_t offset,
                          std::span<std::byte> out) const {
  try {
    read_as_mounted(fetcher_, file, offset, out);
  } catch (const Error& error) {
    if (!is_stopping_) {
      fs_.damage.note(fs_.tree.path(ino), error);
    }
    if (error.kind() == ErrorKind::kChanged) {
      fs_.on_source_changed();
    }
    throw;
  }
}

void BackgroundFill::note_end(const FillResult& result) {
  switch (result.end) {
    case FillEnd::kComplete:
      if (!result.was_complete) {
        fs_.kept->note_complete(inos_[result.task]);
      }
      return;
    case FillEnd::kNoRoom:
      log_warning("--fill ended: there is no room for more arrays in the cache folder");
      return;
    default:
      // Damage, changes and failures of the disk were told when they were found.
      return;
  }
}

}  // namespace npyfs
