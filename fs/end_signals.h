// SPDX-License-Identifier: Apache-2.0
//
// SIGTERM, SIGINT and SIGHUP end a session.
//
// libfuse's own handlers set a flag, which its loop looks at before it goes to sleep: a signal
// between the two is lost, and the mount stays. Here a thread takes the signals and wakes the loop
// until it has ended.

#pragma once

#include <pthread.h>

#include <atomic>
#include <csignal>
#include <functional>
#include <thread>

struct fuse_session;

namespace npyfs {

class EndSignals {
 public:
  // Holds the signals back, until watch(). To be made by the thread that will run the loop, before
  // there are others. They stay held back behind its end: a second one is not to kill what is
  // ending. A signal that is ignored (nohup) or handled stays so. From now on a write to
  // a closed pipe is an error and no signal.
  explicit EndSignals(fuse_session* session);
  ~EndSignals();
  EndSignals(const EndSignals&) = delete;
  EndSignals& operator=(const EndSignals&) = delete;

  // Whether one is held back.
  bool is_pending() const;
  // Takes them from here on. The first one calls `before_end`, while the loop still answers.
  void watch(std::function<void()> before_end);
  // The loop has ended. Also if it was never watched.
  void finish();

 private:
  void run(const std::function<void()>& before_end);

  fuse_session* session_;
  pthread_t loop_;
  sigset_t ending_;
  std::atomic<bool> finished_{false};
  std::thread thread_;
};

}  // namespace npyfs
