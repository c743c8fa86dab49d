// SPDX-License-Identifier: Apache-2.0
//
// Utterances cut out of recordings, as Kaldi's extract-segments cuts them.

#pragma once

#include "formats/kaldi/index.h"
#include "formats/opening.h"

namespace npyfs {

// One record for each line of `segments` (utterance, recording, start, end[, channel]); the lines
// that Kaldi skips are left out with a warning. Throws kCorrupt for what ends Kaldi's program: a
// recording that is no wave, or one of several channels of which the line names none. Throws kIo,
// kChanged. One thread opens; what comes back is immutable.
ObjectIndex cut_segments(const SourcePtr& segments, ObjectIndex recordings, OpenContext& context);

}  // namespace npyfs
