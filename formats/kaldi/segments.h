// SPDX-License-Identifier: Apache-2.0
//
// Utterances cut out of recordings, as Kaldi's extract-segments cuts them.

#pragma once

#include "formats/format.h"
#include "formats/kaldi/index.h"

namespace npyfs {

// One record for each line of `segments` (utterance, recording, start, end[, channel]); the lines
// that Kaldi skips are left out with a warning. Throws kCorrupt for lines it does not take.
ObjectIndex cut_segments(const SourcePtr& segments, ObjectIndex recordings, OpenContext& context);

// For each key of `wanted` its row in `keys`, kNoRow where it has none. Throws kCorrupt where
// `keys` has one twice; `name` is what messages call it.
constexpr std::uint64_t kNoRow = UINT64_MAX;
std::vector<std::uint64_t> match_keys(const StringList& wanted, const StringList& keys,
                                      const std::string& name);

}  // namespace npyfs
