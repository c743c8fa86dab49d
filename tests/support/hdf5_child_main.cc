// SPDX-License-Identifier: Apache-2.0
//
// main of tests that open HDF5 files: like npyfs, they start themselves to become the child that
// runs libhdf5. A file that begins with a word of ours makes that child misbehave.

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <iterator>
#include <string>

#include "formats/hdf5/child.h"

namespace {

// Waits for the request, so that it is the answer that fails.
void take_request() {
  char request[4096];
  static_cast<void>(::recv(npyfs::kChildSocket, request, sizeof request, 0));
}

// From now on prctl(PR_SET_SECCOMP) fails, as where a container forbids it.
void deny_confinement() {
  sock_filter filter[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                          BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_prctl, 0, 3),
                          BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args)),
                          BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PR_SET_SECCOMP, 0, 1),
                          BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES),
                          BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const sock_fprog program{static_cast<unsigned short>(std::size(filter)), filter};
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
}

int run_child() {
  char word[9] = {};
  static_cast<void>(::pread(npyfs::kChildFile, word, sizeof word - 1, 8));
  std::string behaviour = word;
  behaviour.resize(std::min(behaviour.size(), behaviour.find(')') + 1));
  if (behaviour == "(crash)") {
    take_request();
    std::abort();
  }
  if (behaviour == "(loops)") {
    take_request();
    const rlimit one_second{1, 1};
    ::setrlimit(RLIMIT_CPU, &one_second);
    // The compiler may not remove a loop that reads something volatile.
    const volatile bool forever = true;
    while (forever) {
    }
  }
  if (behaviour == "(large)" || behaviour == "(chaos)" || behaviour == "(halfs)") {
    take_request();
    const std::string answer = behaviour == "(large)"   ? std::string("\xff\xff\xff\xff\x12", 5)
                               : behaviour == "(chaos)" ? std::string("\x06\0\0\0\x12?????", 10)
                                                        : std::string("\x06\0\0\0\x12", 5);
    static_cast<void>(::send(npyfs::kChildSocket, answer.data(), answer.size(), MSG_NOSIGNAL));
    return 0;
  }
  if (behaviour == "(mutes)") {
    take_request();
    take_request();  // there is none: until nobody listens any more
    return 0;
  }
  if (behaviour == "(drips)") {
    take_request();
    const std::string nothing("\x01\0\0\0\x15", 5);  // a frame of data
    while (::send(npyfs::kChildSocket, nothing.data(), nothing.size(), MSG_NOSIGNAL) > 0) {
    }
    return 0;
  }
  if (behaviour == "(denied)") {
    deny_confinement();
  }
  return npyfs::run_hdf5_child();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && argv[1] == npyfs::kHdf5ChildArgument) {
    return run_child();
  }
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
