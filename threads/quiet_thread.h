// SPDX-License-Identifier: Apache-2.0
//
// Threads that take no signals: those that end a mount are for fs/end_signals.

#pragma once

#include <pthread.h>

#include <csignal>
#include <thread>
#include <utility>

namespace npyfs {

// Throws std::system_error where the system has no thread to give.
template <typename Work>
std::thread start_quiet_thread(Work&& work) {
  // A thread begins with the mask of who starts it.
  struct AllHeldBack {
    AllHeldBack() {
      sigset_t all;
      sigfillset(&all);
      pthread_sigmask(SIG_SETMASK, &all, &before);
    }
    ~AllHeldBack() { pthread_sigmask(SIG_SETMASK, &before, nullptr); }
    sigset_t before;
  };
  const AllHeldBack held;
  return std::thread(std::forward<Work>(work));
}

}  // namespace npyfs
