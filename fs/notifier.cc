// SPDX-License-Identifier: Apache-2.0

#include "fs/notifier.h"

#include <algorithm>
#include <utility>

#include "fs/fuse_ops.h"
#include "threads/quiet_thread.h"

namespace npyfs {

Notifier::Notifier(fuse_session* session, Forest& forest) : session_(session), forest_(forest) {
  thread_ = start_quiet_thread([this] { run(); });
}

Notifier::~Notifier() { stop(); }

void Notifier::note_change() {
  {
    const MutexLock lock(mutex_);
    changed_ = true;
  }
  wake_.notify_all();
}

void Notifier::note_news() {
  {
    const MutexLock lock(mutex_);
    news_ = true;
  }
  wake_.notify_all();
}

void Notifier::begin_stop() {
  {
    const MutexLock lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
}

void Notifier::stop() {
  begin_stop();
  if (thread_.joinable()) {
    thread_.join();
  }
}

void Notifier::run() {
  while (!stop_) {
    bool changed = false;
    bool news = false;
    {
      const MutexLock lock(mutex_);
      while (!changed_ && !news_ && !stop_) {
        wake_.wait(mutex_);
      }
      changed = std::exchange(changed_, false);
      news = std::exchange(news_, false);
    }
    if (changed) {
      drop_changed();
    }
    if (news) {
      let_go_of_names();
    }
  }
}

void Notifier::drop_changed() {
  std::map<Ino, std::size_t> known;  // of files that are still there
  forest_.for_each_fed([&](const FedFiles& files) {
    const auto count = static_cast<std::size_t>(
        std::count_if(files.sources.begin(), files.sources.end(),
                      [](const SourcePtr& source) { return source->changed(); }));
    known.emplace(files.first, count);
    const auto before = changed_sources_.find(files.first);
    if (count == (before != changed_sources_.end() ? before->second : 0)) {
      return;
    }
    // The kernel answers ENOENT at once for the files it does not know.
    for (Ino ino = files.first; ino < files.first + files.count && !stop_; ++ino) {
      fuse_lowlevel_notify_inval_inode(session_, ino, 0, 0);
    }
  });
  changed_sources_ = std::move(known);
}

// The name goes from the kernel's cache, and with it all below that nobody holds. What somebody
// holds, a working directory for one, stays as it is, and is forgotten when he lets go of it.
void Notifier::let_go_of_names() {
  while (!stop_) {
    auto entry = forest_.pop_completed();
    if (!entry) {
      if (auto view = forest_.pop_idle()) {
        entry.emplace(Tree::kRoot, std::move(*view));
      }
    }
    if (!entry) {
      return;
    }
    const auto& [directory, name] = *entry;
    fuse_lowlevel_notify_inval_entry(session_, directory, name.data(), name.size());
  }
}

}  // namespace npyfs
