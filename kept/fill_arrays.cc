// SPDX-License-Identifier: Apache-2.0

#include "kept/fill_arrays.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <list>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "threads/idle_thread.h"
#include "threads/mutex.h"
#include "threads/quiet_thread.h"

namespace npyfs {

namespace {

constexpr std::chrono::milliseconds kTick{100};
// An array that another one has removed meanwhile, or that turns out to be bad, is made anew.
constexpr int kMostTries = 3;

class ArraysFill {
 public:
  ArraysFill(const std::vector<FillTask>& tasks, FillManners manners)
      : tasks_(tasks), manners_(manners) {
    for (const FillTask& task : tasks) {
      state_.all_nbytes += task.nbytes;
    }
  }
  ~ArraysFill() { join(); }
  ArraysFill(const ArraysFill&) = delete;
  ArraysFill& operator=(const ArraysFill&) = delete;

  void run(unsigned threads, const FillHooks& hooks) {
    start(threads);
    bool is_over = false;
    while (!is_over) {
      std::deque<FillResult> results;
      FillState state;
      {
        const MutexLock lock(mutex_);
        if (working_ > 0 && results_.empty()) {
          changed_.wait_for(mutex_, kTick);
        }
        is_over = working_ == 0;
        results.swap(results_);
        state = state_;
      }
      for (const FillResult& result : results) {
        hooks.on_end(result);
      }
      if (!hooks.progress(state)) {
        is_stopping_ = true;
      }
    }
  }

 private:
  // An array that somebody is filling.
  struct Open {
    std::size_t task = 0;
    std::optional<ArrayFill> fill{};
    unsigned users = 0;
    bool is_taken = false;  // all of it: nobody begins with a part of it any more
  };
  using Opens = std::list<Open>;

  void start(unsigned threads) {
    threads_.reserve(threads);
    for (unsigned i = 0; i < threads; ++i) {
      {
        const MutexLock lock(mutex_);
        ++working_;
      }
      try {
        threads_.push_back(start_quiet_thread([this] { work(); }));
      } catch (const std::system_error&) {
        const MutexLock lock(mutex_);
        --working_;
        if (i == 0) {
          throw;
        }
        return;
      }
    }
  }

  void join() {
    is_stopping_ = true;
    for (std::thread& thread : threads_) {
      thread.join();
    }
  }

  void work() noexcept {
    if (manners_ == FillManners::kIdle) {
      become_idle_thread();
    } else {
      become_patient_thread();
    }
    try {
      while (work_once()) {
      }
    } catch (const std::exception&) {
      // No memory for a line of the list: others go on.
    }
    {
      const MutexLock lock(mutex_);
      --working_;
    }
    changed_.notify_all();
  }

  // False where there is nothing left to do.
  bool work_once() {
    std::optional<Opens::iterator> open = join_open();
    if (!open) {
      const std::optional<std::size_t> task = next_task();
      if (!task) {
        return false;
      }
      open = begin(*task);
    }
    if (*open == opens_end()) {
      return true;
    }
    const std::optional<std::uint64_t> nbytes = (*open)->fill->fill_some();
    leave(*open, nbytes);
    return true;
  }

  Opens::iterator opens_end() {
    const MutexLock lock(mutex_);
    return opens_.end();
  }

  // The first array of those being filled that has something left.
  std::optional<Opens::iterator> join_open() {
    const MutexLock lock(mutex_);
    for (auto open = opens_.begin(); open != opens_.end(); ++open) {
      if (!open->is_taken) {
        ++open->users;
        return open;
      }
    }
    return std::nullopt;
  }

  std::optional<std::size_t> next_task() {
    const MutexLock lock(mutex_);
    return is_stopping_ || is_full_ || next_ >= tasks_.size() ? std::nullopt
                                                              : std::optional(next_++);
  }

  // The end: nothing is to be filled.
  Opens::iterator begin(std::size_t number) {
    const FillTask& task = tasks_[number];
    auto array = open_array(task);
    if (array == nullptr || array->is_complete()) {
      FillResult result{number,
                        array == nullptr ? FillEnd::kFailed : FillEnd::kComplete,
                        array != nullptr,
                        0,
                        {}};
      const MutexLock lock(mutex_);
      state_.done_nbytes += task.nbytes;
      state_.found_nbytes += task.nbytes;
      results_.push_back(std::move(result));
      changed_.notify_all();
      return opens_.end();
    }
    Opens fresh(1);
    fresh.front().task = number;
    fresh.front().fill.emplace(std::move(array), task.read, [this] { return is_stopping_.load(); });
    fresh.front().users = 1;
    const MutexLock lock(mutex_);
    opens_.splice(opens_.end(), fresh);
    return std::prev(opens_.end());
  }

  // What lies there as a complete file, but not as it was left, is read first.
  std::shared_ptr<KeptArray> open_array(const FillTask& task) {
    std::shared_ptr<KeptArray> array;
    for (int tries = 0; tries < kMostTries && !is_stopping_; ++tries) {
      array = task.open();
      if (array == nullptr || array->is_complete()) {
        return array;
      }
      if (!array->needs_check() || (array->check() && array->is_complete())) {
        return array;
      }
    }
    return array;
  }

  void leave(Opens::iterator open, std::optional<std::uint64_t> nbytes) {
    {
      const MutexLock lock(mutex_);
      state_.done_nbytes += nbytes.value_or(0);
      open->is_taken = open->is_taken || !nbytes;
      if (--open->users > 0 || !open->is_taken) {
        return;
      }
    }
    // The last one: nobody joins any more.
    const FillEnd end = open->fill->finish();
    FillResult result{open->task, end, false, open->fill->unread_blocks(), open->fill->why()};
    {
      const MutexLock lock(mutex_);
      is_full_ = is_full_ || end == FillEnd::kNoRoom;
      results_.push_back(std::move(result));
      opens_.erase(open);
    }
    changed_.notify_all();
  }

  const std::vector<FillTask>& tasks_;
  const FillManners manners_;
  std::atomic<bool> is_stopping_{false};
  Mutex mutex_;
  Condition changed_;
  std::size_t next_ GUARDED_BY(mutex_) = 0;
  Opens opens_ GUARDED_BY(mutex_);  // in the order of their tasks
  std::deque<FillResult> results_ GUARDED_BY(mutex_);
  FillState state_ GUARDED_BY(mutex_);
  bool is_full_ GUARDED_BY(mutex_) = false;
  unsigned working_ GUARDED_BY(mutex_) = 0;
  std::vector<std::thread> threads_;
};

}  // namespace

void fill_arrays(const std::vector<FillTask>& tasks, unsigned threads, FillManners manners,
                 const FillHooks& hooks) {
  const unsigned cores = std::max(1U, std::thread::hardware_concurrency());
  ArraysFill(tasks, manners).run(threads != 0 ? threads : cores, hooks);
}

}  // namespace npyfs
