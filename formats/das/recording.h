// SPDX-License-Identifier: Apache-2.0
//
// One recording: NAME.wav, or NAME.npz with the members data and samplerate.

#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "formats/chunk_grid.h"
#include "formats/opening.h"

namespace npyfs {

// Frames of a recording as they are stored. Immutable; any thread.
class Samples {
 public:
  virtual ~Samples() = default;
  // Fills `out` with frames from `first` on, channels side by side. Throws as ByteSource::read_at.
  virtual void read(std::uint64_t first, std::span<std::byte> out) const = 0;
};

struct Recording {
  std::string name;  // of the file, without its folder
  SourcePtr file;
  DType dtype;
  std::uint64_t frames = 0;
  std::uint64_t channels = 0;
  double rate_hz = 0;

  std::shared_ptr<const Samples> samples;
  // Where the frames lie as they are; null: they do not, only `samples` reads them.
  SourcePtr mapped;
  std::uint64_t offset = 0;
  // Who can verify their bytes; null: nobody.
  std::shared_ptr<const Checksums> guarded_by;
  std::uint64_t record = 0;

  Guard guard() const { return {guarded_by.get(), record, guarded_by != nullptr ? 1U : 0U}; }
};

// Whether the name is one of a recording: .wav or .npz, in any case.
bool is_recording_name(const std::string& name);

// Throws kCorrupt for a damaged file, kUnsupported for one without audio, naming it.
Recording open_recording(SourcePtr file, OpenContext& context);

// The frames as an array [frames, channels] of `dtype`, which is the recording's own or one that
// takes it (promoted_type).
std::shared_ptr<const ChunkGrid> make_audio_grid(const Recording& recording, const DType& dtype);

}  // namespace npyfs
