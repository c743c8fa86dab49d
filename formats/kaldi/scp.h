// SPDX-License-Identifier: Apache-2.0
//
// Scripts: a key and a place in each line.

#pragma once

#include "formats/kaldi/index.h"
#include "formats/opening.h"

namespace npyfs {

// Reads a script and the header of every object it names, in the order of the files. A record whose
// place cannot be known throws, naming the first such line and how many there are; with
// context.permissive it is left out. `folder` is that of the data set: relative paths may be
// relative to it, and paths may have to lie in it. Throws kIo, kChanged. One thread opens; what
// comes back is immutable.
ObjectIndex read_scp(const SourcePtr& script, const std::string& folder, Wanted wanted,
                     OpenContext& context);

}  // namespace npyfs
