// SPDX-License-Identifier: Apache-2.0
//
// The kernel's questions: unpack, ask the tree or the fetcher, reply. The only place where an Error
// becomes an errno.

#pragma once

#define FUSE_USE_VERSION 312
#include <fuse3/fuse_lowlevel.h>

#include <functional>
#include <string>

#include "fs/damage_log.h"
#include "fs/fetch.h"
#include "fs/tree.h"

namespace npyfs {

// What the callbacks work on; the session's user data.
struct MountedFs {
  const Tree& tree;
  const Fetcher& fetcher;
  DamageLog& damage;
  uid_t owner_uid = 0;
  gid_t owner_gid = 0;
  // Called when a read has found a source changed; any thread, must not wait.
  std::function<void()> on_source_changed;
};

// Callbacks for a session whose user data is a MountedFs*.
const fuse_lowlevel_ops& fuse_ops();

}  // namespace npyfs
