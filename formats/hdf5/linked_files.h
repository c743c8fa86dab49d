// SPDX-License-Identifier: Apache-2.0
//
// An HDF5 file and those that it links to, as one store.

#pragma once

#include <string>

#include "formats/hdf5/description.h"
#include "formats/hdf5/patience.h"
#include "formats/opening.h"
#include "formats/store.h"

namespace npyfs {

// Throws kCorrupt where libhdf5 cannot open the file, or does not survive it. What is in it and
// cannot be shown is left out with a warning. Of other files only regular ones below the file's own
// folder are opened. Throws kTooLarge where it, and all that it leads to, take more than what
// `used` leaves of the budget, kIo where they take too long.
StorePtr open_hdf5(const SourcePtr& source, const std::string& path, OpenContext& context,
                   const Patience& patience = {}, const DescriptionBudget& used = {});

}  // namespace npyfs
