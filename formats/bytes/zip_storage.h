// SPDX-License-Identifier: Apache-2.0
//
// The members of a zip archive as a place with names in it.

#pragma once

#include <memory>

#include "formats/bytes/chunk_source.h"
#include "formats/bytes/storage.h"
#include "formats/bytes/zip_members.h"

namespace npyfs {

// Keys are members' names; members whose names are none (is_key) are left out, and of several of
// one name the last counts, as for every writer that replaces values by appending. What has to be
// decoded and is not asked for as a whole is held by `cache`, which must outlive the storage.
// Values and folders have no identity of their own: what the archive is says what they are.
StoragePtr open_zip_storage(std::shared_ptr<const ZipMembers> members, ChunkCache& cache);

}  // namespace npyfs
