// SPDX-License-Identifier: Apache-2.0
//
// Threads whose work nobody waits for, or not yet.

#pragma once

#include <linux/ioprio.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace npyfs {

// From now on the calling thread gets the processor and the disk only where nobody else wants them,
// as far as the system allows. There is no way back without privileges. Processes that it starts
// (a decoder's child, which readers wait for, too) are as important as any.
inline void become_idle_thread() {
  const sched_param none{};
  (void)::sched_setscheduler(0, SCHED_IDLE | SCHED_RESET_ON_FORK, &none);
  (void)::syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, IOPRIO_PRIO_VALUE(IOPRIO_CLASS_IDLE, 0));
}

// From now on the calling thread gets little of the processor where others want it, and never
// nothing: of work that must end some day. As above there is no way back.
inline void become_patient_thread() {
  constexpr int kLeastWeight = 19;
  // In Linux this is the thread's own.
  (void)::setpriority(PRIO_PROCESS, static_cast<id_t>(::syscall(SYS_gettid)), kLeastWeight);
}

}  // namespace npyfs
