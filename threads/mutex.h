// SPDX-License-Identifier: Apache-2.0
//
// A mutex that clang's -Wthread-safety understands; libstdc++'s own has no annotations.

#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#if defined(__clang__)
#define NPYFS_ANNOTATE(x) __attribute__((x))
#else
#define NPYFS_ANNOTATE(x)
#endif

#define GUARDED_BY(mutex) NPYFS_ANNOTATE(guarded_by(mutex))
#define REQUIRES(mutex) NPYFS_ANNOTATE(requires_capability(mutex))

namespace npyfs {

class NPYFS_ANNOTATE(capability("mutex")) Mutex {
 public:
  void lock() NPYFS_ANNOTATE(acquire_capability()) { mutex_.lock(); }
  void unlock() NPYFS_ANNOTATE(release_capability()) { mutex_.unlock(); }

 private:
  std::mutex mutex_;
};

class NPYFS_ANNOTATE(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) NPYFS_ANNOTATE(acquire_capability(mutex)) : mutex_(mutex) {
    mutex_.lock();
  }
  ~MutexLock() NPYFS_ANNOTATE(release_capability()) { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

// Waits with a Mutex that the caller holds.
class Condition {
 public:
  void wait(Mutex& mutex) REQUIRES(mutex) { condition_.wait(mutex); }
  // The same, but not for longer than that.
  void wait_for(Mutex& mutex, std::chrono::milliseconds most) REQUIRES(mutex) {
    condition_.wait_for(mutex, most);
  }
  void notify_all() { condition_.notify_all(); }

 private:
  std::condition_variable_any condition_;
};

}  // namespace npyfs
