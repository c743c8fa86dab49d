// SPDX-License-Identifier: Apache-2.0
//
// Tells what a file holds. For the child only.

#pragma once

#include <functional>
#include <span>
#include <string>

#include "formats/hdf5/child_handle.h"
#include "formats/hdf5/wire.h"

namespace npyfs {

using SendFrame = std::function<void(WireFrameWriter& frame)>;

// The object `path` of the file, and all below it where it is a group; nothing where there is no
// such path.
void describe_object(hid_t file, const std::string& path, const SendFrame& send);

// Where the chunks of the data set `path` lie, by asking the library for each: it walks its index
// for every question, so that this is for small data sets.
void list_chunks(hid_t file, const std::string& path, const SendFrame& send);

}  // namespace npyfs
