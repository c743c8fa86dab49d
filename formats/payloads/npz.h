// SPDX-License-Identifier: Apache-2.0
//
// An .npz archive: a zip of .npy files.

#pragma once

#include "formats/opening.h"
#include "formats/store.h"

namespace npyfs {

// Whether it is an archive most of whose files are named .npy. Never throws for what it finds.
bool is_npz(const ByteSource& source);

// Its arrays under their members' names; members in folders become groups. Stored members are read
// where they lie, deflated ones through context.cache. Throws kCorrupt where the directory or a
// member is damaged, unless the context is permissive; what cannot be shown is left out with a
// warning.
StorePtr open_npz(const SourcePtr& source, OpenContext& context);

}  // namespace npyfs
