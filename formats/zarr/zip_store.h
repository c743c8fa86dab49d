// SPDX-License-Identifier: Apache-2.0
//
// A zarr store in a zip archive.

#pragma once

#include "formats/bytes/storage.h"
#include "formats/format.h"

namespace npyfs {

// Where the store in `archive` lies: behind the folder that all of its metadata may lie in. Says
// what of the archive is left out.
StoragePtr open_zip_store(SourcePtr archive, OpenContext& context);

}  // namespace npyfs
