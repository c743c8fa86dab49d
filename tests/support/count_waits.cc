// SPDX-License-Identifier: Apache-2.0

#include "tests/support/count_waits.h"

#include <dlfcn.h>
#include <pthread.h>

#include <atomic>

namespace npyfs::testing {

namespace {

std::atomic<std::uint64_t> begun{0};

}  // namespace

std::uint64_t waits_begun() { return begun; }

}  // namespace npyfs::testing

// Stands in for the C library's, which does the waiting.
extern "C" int pthread_cond_wait(pthread_cond_t* condition, pthread_mutex_t* mutex) {
  using Wait = int (*)(pthread_cond_t*, pthread_mutex_t*);
  static const auto wait = reinterpret_cast<Wait>(dlsym(RTLD_NEXT, "pthread_cond_wait"));
  ++npyfs::testing::begun;
  return wait(condition, mutex);
}
