// SPDX-License-Identifier: Apache-2.0
//
// The process that runs libhdf5. Crafted files make that library read and write where it must not;
// here it has one file, one socket, little memory and no way to open anything else.

#pragma once

#include <string_view>

namespace npyfs {

// The only argument of a process that is to become the child: every program that opens HDF5 files
// starts itself so, and calls run_hdf5_child first of all.
inline constexpr std::string_view kHdf5ChildArgument = "--hdf5-child";

// What the child finds open: the socket to whoever started it, and the file.
inline constexpr int kChildSocket = 0;
inline constexpr int kChildFile = 3;

// Answers requests (formats/hdf5/wire.h) until the socket is closed. The exit code.
int run_hdf5_child();

}  // namespace npyfs
