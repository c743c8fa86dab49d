// SPDX-License-Identifier: Apache-2.0
//
// A directory of .npy files: splits are its directories, attributes its attrs.npy.

#pragma once

#include <memory>
#include <string>

#include "formats/opening.h"
#include "formats/store.h"

namespace npyfs {

// Whether the directory is made of .npy files: it is called so, has attrs.npy, or most of its files
// are. `named`: the user says so, and any will do.
bool is_npy_dir(const std::string& path, bool named);

// Throws kCorrupt, naming file and byte, where a .npy file in it is damaged, unless the context is
// permissive; those that cannot be shown are left out with a warning.
StorePtr open_npy_dir(const std::string& path, OpenContext& context);

}  // namespace npyfs
