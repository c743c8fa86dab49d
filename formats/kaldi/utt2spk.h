// SPDX-License-Identifier: Apache-2.0
//
// Tables such as utt2spk: a line for each key, with another key behind it.

#pragma once

#include <optional>

#include "formats/format.h"

namespace npyfs {

// Nothing for a table without lines: as Kaldi has it, every key stands for itself then. Throws
// kCorrupt where a line has not two words or a key has a line already.
std::optional<KeyMap> read_utt2spk(const ByteSource& file);

}  // namespace npyfs
