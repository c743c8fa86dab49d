// SPDX-License-Identifier: Apache-2.0
//
// A data directory: feats.scp or wav.scp, and what else is said of the same utterances.

#pragma once

#include "formats/format.h"

namespace npyfs {

bool is_data_dir(const std::string& path);

// x is feats.scp, else wav.scp cut by segments; text and utt2spk are joined by key.
std::shared_ptr<const RecordTable> open_data_dir(const std::string& path, OpenContext& context);

}  // namespace npyfs
