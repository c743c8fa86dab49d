// SPDX-License-Identifier: Apache-2.0
//
// The arrays of a data set as tasks for kept/fill_arrays, read as a mount reads them.

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "fs/fetch.h"
#include "fs/file.h"

namespace npyfs {

// Fills `out` with the bytes of the file from `offset` on, as a reader of a mount is given them.
// Throws what it would be told: kCorrupt for damage, kChanged for a source that has changed.
void read_as_mounted(const Fetcher& fetcher, const File& file, std::uint64_t offset,
                     std::span<std::byte> out);

// Calls `visit` for each array of a tree (Tree or Forest) that is made of sources, in the tree's
// order.
using VisitArray =
    std::function<void(Ino ino, const std::string& path, std::shared_ptr<const File> file)>;
template <typename AnyTree>
void for_each_array_file(const AnyTree& tree, const VisitArray& visit);

}  // namespace npyfs
