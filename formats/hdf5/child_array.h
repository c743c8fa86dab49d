// SPDX-License-Identifier: Apache-2.0
//
// Tells what one data set is: its type, its shape, how it is stored. For the child only.

#pragma once

#include <optional>
#include <string>

#include "formats/bytes/value.h"
#include "formats/hdf5/child_describe.h"
#include "formats/hdf5/child_handle.h"
#include "formats/hdf5/wire.h"

namespace npyfs {

struct NamedDataset {
  hid_t file;
  hid_t dataset;
  const std::string& name;
  const std::string& path;
};

// The kArray frame, which is not yet sent; nothing where there is no array to show, and then `why`,
// or, where it has no shape, no reason. `send` gets kProgress where all data has to be looked at.
std::optional<WireFrameWriter> tell_array(const NamedDataset& named, const Dict& attributes,
                                          const SendFrame& send, std::string& why);

}  // namespace npyfs
