// SPDX-License-Identifier: Apache-2.0
//
// main of tests that open HDF5 files: like npyfs, they start themselves to become the child that
// runs libhdf5. A file that begins with a word of ours makes that child misbehave.

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "formats/hdf5/child.h"

namespace {

// Waits for the request, so that it is the answer that fails.
void take_request() {
  char request[4096];
  static_cast<void>(::recv(npyfs::kChildSocket, request, sizeof request, 0));
}

int run_child() {
  char word[8] = {};
  static_cast<void>(::pread(npyfs::kChildFile, word, sizeof word - 1, 8));
  const std::string behaviour = word;
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
