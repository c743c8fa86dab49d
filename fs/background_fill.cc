// SPDX-License-Identifier: Apache-2.0

#include "fs/background_fill.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <memory>
#include <new>
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
// Threads of the least weight delay readers all the same, where there are as many of both as cores:
// a random pread of 4 KiB took 1.6 to 2.3 times as long (2 cores, load of 20, 2026-11).
constexpr int kRestFactor = 4;
constexpr std::chrono::milliseconds kMostRest{500};
constexpr std::chrono::milliseconds kNap{20};

}  // namespace

BackgroundFill::BackgroundFill(MountedFs& fs, const VerifiedRecords& verified, What what)
    : fs_(fs),
      cache_(std::min(fs.cache.capacity_nbytes() / 4, kMostCacheNbytes), verified),
      fetcher_(cache_, verified) {
  if (what == What::kAll) {
    for_each_array_file(fs_.tree,
                        [this](Ino ino, const std::string& path, std::shared_ptr<const File> file) {
                          if (!why_not_kept(*file)) {
                            add(all_, ino, path, std::move(file));
                          }
                        });
  }
  thread_ = start_quiet_thread([this] { run(); });
}

BackgroundFill::~BackgroundFill() {
  {
    const MutexLock lock(mutex_);
    is_stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void BackgroundFill::add(Tasks& tasks, Ino ino, const std::string& path,
                         std::shared_ptr<const File> file) const {
  const std::uint64_t nbytes = file->nbytes();
  tasks.inos.push_back(ino);
  tasks.tasks.push_back({path, nbytes,
                         [this, ino, path, file] { return fs_.kept->open(ino, path, *file); },
                         [this, ino, file](std::uint64_t offset, std::span<std::byte> out) {
                           read(ino, *file, offset, out);
                         }});
}

void BackgroundFill::complete_later(Ino ino) noexcept {
  try {
    const MutexLock lock(mutex_);
    wanted_.push_back(ino);
  } catch (const std::bad_alloc&) {
    return;  // it stays in part
  }
  changed_.notify_all();
}

void BackgroundFill::run() {
  fill(all_);
  all_ = {};
  while (!is_stopping_) {
    try {
      fill(take_wanted());
    } catch (const std::bad_alloc&) {
      // They stay in part, until readers have read most of them again.
    }
  }
}

// Waits for some; none at the end.
BackgroundFill::Tasks BackgroundFill::take_wanted() {
  std::vector<Ino> inos;
  {
    const MutexLock lock(mutex_);
    while (wanted_.empty() && !is_stopping_) {
      changed_.wait(mutex_);
    }
    inos.swap(wanted_);
  }
  Tasks tasks;
  for (const Ino ino : inos) {
    if (const auto entry = fs_.tree.find(ino)) {
      add(tasks, ino, fs_.tree.path(ino), entry->file()->shared_from_this());
    }
  }
  return tasks;
}

void BackgroundFill::fill(const Tasks& tasks) {
  if (tasks.tasks.empty()) {
    return;
  }
  const unsigned cores = std::max(1U, std::thread::hardware_concurrency());
  FillHooks hooks;
  hooks.progress = [this](const FillState& /*state*/) { return !is_stopping_; };
  hooks.on_end = [&](const FillResult& result) { note_end(tasks.inos[result.task], result); };
  try {
    fill_arrays(tasks.tasks, std::min(cores, kMostThreads), FillManners::kPatient, hooks);
  } catch (const std::exception& error) {
    log_warning(fmt::format("arrays are not completed in the background: {}", error.what()));
  }
}

void BackgroundFill::rest_for_readers() const {
  using Clock = std::chrono::steady_clock;
  // When the thread went on, and how many reads there had been.
  thread_local Clock::time_point began;
  thread_local std::uint64_t reads_before = 0;
  if (fs_.stats.count_reads() != reads_before) {
    const auto worked = Clock::now() - began;
    const auto until = Clock::now() + std::min<Clock::duration>(kRestFactor * worked, kMostRest);
    while (!is_stopping_ && Clock::now() < until) {
      std::this_thread::sleep_for(kNap);
    }
  }
  began = Clock::now();
  reads_before = fs_.stats.count_reads();
}

// A reader would be told the same, and find it in the list of what went wrong.
void BackgroundFill::read(Ino ino, const File& file, std::uint64_t offset,
                          std::span<std::byte> out) const {
  rest_for_readers();
  try {
    read_as_mounted(fetcher_, file, offset, out);
  } catch (const Error& error) {
    // The mount may be ending, which this one is told last.
    if (!is_stopping_ && error.to_errno() != EINTR) {
      fs_.damage.note(fs_.tree.path(ino), error);
    }
    if (error.kind() == ErrorKind::kChanged) {
      fs_.on_source_changed();
    }
    throw;
  }
}

void BackgroundFill::note_end(Ino ino, const FillResult& result) const {
  switch (result.end) {
    case FillEnd::kComplete:
      if (!result.was_complete) {
        fs_.kept->note_complete(ino);
      }
      return;
    case FillEnd::kNoRoom:
      log_warning("arrays are not completed: there is no room for more in the cache folder");
      return;
    default:
      // Damage, changes and failures of the disk were told when they were found.
      return;
  }
}

}  // namespace npyfs
