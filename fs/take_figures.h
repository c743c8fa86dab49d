// SPDX-License-Identifier: Apache-2.0
//
// Asks all parts of a mount for their figures.

#pragma once

#include <chrono>
#include <string>

#include "fs/fuse_ops.h"
#include "fs/stats.h"

namespace npyfs {

// What a mount's figures begin with; made when the mount is.
struct MountBegin {
  std::string version;
  std::string mountpoint;
  double opening_s = 0;
  std::optional<IndexFigures> index{};
  std::chrono::system_clock::time_point time = std::chrono::system_clock::now();
  std::chrono::steady_clock::time_point steady = std::chrono::steady_clock::now();
};

// Once `fs` serves. Any thread. Figures are read one by one while readers go on.
MountFigures take_figures(const MountedFs& fs, const MountBegin& begin);

}  // namespace npyfs
