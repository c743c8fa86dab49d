// SPDX-License-Identifier: Apache-2.0
//
// The groups and arrays of a store, found by their metadata.

#pragma once

#include "formats/bytes/storage.h"
#include "formats/opening.h"
#include "formats/store.h"

namespace npyfs {

// Arrays that are not understood are left out with a warning. Throws kUnsupported where there is no
// metadata at the root or right below, or the root is such an array.
StorePtr open_hierarchy(StoragePtr storage, OpenContext& context);

}  // namespace npyfs
