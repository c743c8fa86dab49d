// SPDX-License-Identifier: Apache-2.0
//
// Threads whose work nobody waits for.

#pragma once

#include <linux/ioprio.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace npyfs {

// From now on the calling thread gets the processor and the disk only where nobody else wants them,
// as far as the system allows. There is no way back without privileges.
inline void become_idle_thread() {
  const sched_param none{};
  (void)::sched_setscheduler(0, SCHED_IDLE, &none);
  (void)::syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, IOPRIO_PRIO_VALUE(IOPRIO_CLASS_IDLE, 0));
}

}  // namespace npyfs
