// SPDX-License-Identifier: Apache-2.0
//
// A data directory: feats.scp or wav.scp, and what else is said of the same utterances.

#pragma once

#include "formats/opening.h"
#include "formats/record_table.h"

namespace npyfs {

// Whether feats.scp or wav.scp lies in it. Never throws.
bool is_data_dir(const std::string& path);

// x is feats.scp, else wav.scp cut by segments; text and utt2spk are joined by key, for which a key
// that stands twice throws kCorrupt. Throws as read_scp, read_ark, cut_segments; kUnsupported for
// files that context.confine forbids. One thread opens; what comes back is immutable.
std::shared_ptr<const RecordTable> open_data_dir(const std::string& path, OpenContext& context);

}  // namespace npyfs
