// SPDX-License-Identifier: Apache-2.0
//
// The system calls that the child may make once its file is open.

#pragma once

namespace npyfs {

// From now on this process reads what it has open, talks over its socket, takes memory and ends;
// every other system call fails with EPERM. A file that has taken over libhdf5 can start no
// process, open no file and reach no network. Does nothing on processors whose calls are not listed
// here.
void forbid_other_system_calls();

}  // namespace npyfs
