// SPDX-License-Identifier: Apache-2.0
//
// Waves, or pieces of waves, as array items: [frames, channels] each, mapped where the samples lie
// in the file as the array wants them.

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "formats/damage_list.h"
#include "formats/format.h"
#include "formats/payloads/wav.h"

namespace npyfs {

// Frames that follow each other in a source, which somebody else owns.
struct WavPiece {
  const ByteSource* source = nullptr;
  std::uint64_t offset = 0;  // of the first frame
  std::uint64_t frames = 0;
  std::uint32_t channels = 0;
  WavSample sample = WavSample::kInt16;
  bool big_endian = false;

  std::uint64_t stored_nbytes() const { return frames * channels * wav_sample_nbytes(sample); }
};

// Frames [first, last) of the wave that begins at byte 0 of `source`, as far as there are any.
WavPiece cut_wav(const ByteSource& source, const WavHeader& header, std::uint64_t first,
                 std::uint64_t last);

// Of some records the wave may be damaged; their pieces mean nothing.
struct WavPieces {
  std::vector<WavPiece> pieces;  // one a record
  DamageList damage;
  std::optional<std::uint32_t> rate_hz;  // where all agree
};

std::shared_ptr<const Column> make_wav_column(std::shared_ptr<const WavPieces> pieces);

}  // namespace npyfs
