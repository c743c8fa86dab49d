// SPDX-License-Identifier: Apache-2.0
//
// Archives: keys and objects, one after another.

#pragma once

#include "formats/kaldi/index.h"
#include "formats/opening.h"

namespace npyfs {

// Whether `head` begins as an archive of binary objects or waves does.
bool looks_like_ark(std::span<const std::byte> head);

// Reads all of an archive, plain or gzip. Throws kCorrupt where it cannot be understood to its end;
// with context.permissive what precedes is kept, with a warning. Throws kIo, kChanged. One thread
// opens; what comes back is immutable.
ObjectIndex read_ark(SourcePtr source, const Wanted& wanted, OpenContext& context);

}  // namespace npyfs
