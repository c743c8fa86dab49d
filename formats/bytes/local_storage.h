// SPDX-License-Identifier: Apache-2.0
//
// The files below a folder of this machine.

#pragma once

#include <string>

#include "formats/bytes/confinement.h"
#include "formats/bytes/storage.h"

namespace npyfs {

// As open_storage, of a path.
StoragePtr open_local_storage(std::string folder, Confinement confinement);

// The path from the root on, links not followed: the daemon changes its working directory.
std::string absolute_path_of(const std::string& path);

}  // namespace npyfs
