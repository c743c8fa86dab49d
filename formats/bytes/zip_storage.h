// SPDX-License-Identifier: Apache-2.0
//
// The members of a zip archive as a place with names in it.

#pragma once

#include <memory>

#include "formats/bytes/chunk_source.h"
#include "formats/bytes/storage.h"
#include "formats/bytes/zip_members.h"

namespace npyfs {

// Keys are member names. Invalid names (see is_key) are left out. If a name occurs twice, the last
// wins: writers replace values by appending. `cache` holds members that are decoded but read in
// parts; it must outlive the storage. Values and folders have no identity of their own: the
// archive's identity stands for them.
StoragePtr open_zip_storage(std::shared_ptr<const ZipMembers> members, ChunkCache& cache);

}  // namespace npyfs
