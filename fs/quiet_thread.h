// SPDX-License-Identifier: Apache-2.0
//
// Threads that take no signals.

#pragma once

#include <pthread.h>

#include <csignal>
#include <thread>
#include <utility>

namespace npyfs {

// Signals are the main thread's: taken by another, they would set libfuse's flag but not wake it.
template <typename Work>
std::thread start_quiet_thread(Work&& work) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread(std::forward<Work>(work));
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

}  // namespace npyfs
