// SPDX-License-Identifier: Apache-2.0

#include "fs/end_signals.h"

#include <array>
#include <chrono>
#include <utility>

#include "fs/fuse_ops.h"
#include "threads/quiet_thread.h"

namespace npyfs {

namespace {

constexpr std::array kEnding{SIGTERM, SIGINT, SIGHUP};
// Interrupts what the loop's thread sleeps in.
constexpr int kWake = SIGUSR1;
// Ends the watching.
constexpr int kStop = SIGUSR2;

void set_handler(int number, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  sigaction(number, &action, nullptr);
}

bool has_default_handler(int number) {
  struct sigaction action {};
  return sigaction(number, nullptr, &action) == 0 && action.sa_handler == SIG_DFL;
}

}  // namespace

EndSignals::EndSignals(fuse_session* session) : session_(session), loop_(pthread_self()) {
  sigemptyset(&ending_);
  for (const int number : kEnding) {
    if (has_default_handler(number)) {
      sigaddset(&ending_, number);
    }
  }
  set_handler(SIGPIPE, SIG_IGN);
  set_handler(kWake, [](int) {});
  pthread_sigmask(SIG_BLOCK, &ending_, nullptr);
}

EndSignals::~EndSignals() { finish(); }

bool EndSignals::is_pending() const {
  sigset_t pending;
  sigpending(&pending);
  for (const int number : kEnding) {
    if (sigismember(&pending, number) == 1 && sigismember(&ending_, number) == 1) {
      return true;
    }
  }
  return false;
}

void EndSignals::watch(std::function<void()> before_end) {
  thread_ = start_quiet_thread([this, before_end = std::move(before_end)] { run(before_end); });
}

void EndSignals::finish() {
  finished_ = true;
  if (thread_.joinable()) {
    pthread_kill(thread_.native_handle(), kStop);
    thread_.join();
  }
}

void EndSignals::run(const std::function<void()>& before_end) {
  sigset_t awaited = ending_;
  sigaddset(&awaited, kStop);
  int number = 0;
  sigwait(&awaited, &number);
  if (number == kStop) {
    return;
  }
  before_end();
  fuse_session_exit(session_);
  while (!finished_) {
    pthread_kill(loop_, kWake);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

}  // namespace npyfs
