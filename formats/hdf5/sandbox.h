// SPDX-License-Identifier: Apache-2.0
//
// The system calls that the child may make.

#pragma once

namespace npyfs {

// From now on this process reads what it has open, talks over its socket, takes memory and ends;
// every other system call fails with EPERM. A file that has taken over libhdf5 can start no
// process, open no file and reach no network. Does nothing on processors whose calls are not listed
// here, where its limits alone hold a child. False, with errno, where the system refuses.
[[nodiscard]] bool forbid_other_system_calls();

}  // namespace npyfs
