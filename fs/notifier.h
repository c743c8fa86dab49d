// SPDX-License-Identifier: Apache-2.0
//
// Tells the kernel what to drop: pages of files whose source has changed, views that nobody uses,
// and names of arrays that have become complete.

#pragma once

#include <atomic>
#include <cstddef>
#include <map>
#include <thread>

#include "fs/forest.h"
#include "threads/mutex.h"

struct fuse_session;

namespace npyfs {

// Runs on a thread of its own: the kernel may block the call until a reader's request is answered.
class Notifier {
 public:
  // Both must outlive it.
  Notifier(fuse_session* session, Forest& forest);
  // As stop(). Where readers are no longer answered, only after the unmount, which ends what the
  // thread may be waiting for.
  ~Notifier();
  Notifier(const Notifier&) = delete;
  Notifier& operator=(const Notifier&) = delete;

  // Any thread; these do not wait. A source was found changed.
  void note_change();
  // The forest has something to name.
  void note_news();
  // Nothing more is told.
  void begin_stop();

  // begin_stop(), and waits for the thread. One thread at a time.
  void stop();

 private:
  void run();
  void drop_changed();
  void let_go_of_names();

  fuse_session* session_;
  Forest& forest_;
  // The thread's own: how many sources had changed, by the first number of the files they feed.
  std::map<Ino, std::size_t> changed_sources_;
  std::atomic<bool> stop_{false};
  Mutex mutex_;
  Condition wake_;
  bool changed_ GUARDED_BY(mutex_) = false;
  bool news_ GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace npyfs
