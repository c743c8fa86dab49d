// SPDX-License-Identifier: Apache-2.0
//
// WAV (RIFF, RIFX, RF64) headers: where the samples lie and what they are.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "formats/bytes/byte_source.h"
#include "formats/bytes/dtype.h"
#include "formats/payloads/payload_bytes.h"

namespace npyfs {

// How one sample is stored. 24-bit samples become int32 with the value in the upper three bytes.
enum class WavSample : std::uint8_t { kUint8, kInt16, kInt24, kInt32, kFloat32, kFloat64 };

struct WavHeader {
  WavSample sample = WavSample::kInt16;
  bool big_endian = false;
  std::uint32_t channels = 0;
  std::uint32_t rate_hz = 0;
  std::uint32_t frame_nbytes = 0;  // as stored
  std::uint64_t data_offset = 0;   // from the RIFF on
  std::uint64_t frames = 0;        // whole ones that are there
  // What the header promises is more than is there: `frames` is what there is.
  bool truncated = false;
  // The header does not say how much there is (a stream): `frames` is all up to the end.
  bool unbounded = false;
};

// Whether `head` begins as a WAV does.
bool is_wav(std::span<const std::byte> head);

// Parses the header of a wave that has at most the bytes of `payload`. Reads the headers of chunks
// and no samples. Throws kCorrupt where it is damaged, kUnsupported for samples that are not PCM or
// float, naming the file and the byte.
WavHeader parse_wav(PayloadBytes& payload);
// The same of the wave at `offset`, with the `avail` bytes that follow there.
WavHeader parse_wav(const ByteSource& source, WindowReader& window, std::uint64_t offset,
                    std::uint64_t avail);

// Element type of the decoded array, always little-endian.
DType wav_dtype(WavSample sample);
// Bytes of one stored sample.
std::uint32_t wav_sample_nbytes(WavSample sample);
// Whether the stored samples are not the array's bytes as they lie.
bool wav_needs_decoding(WavSample sample, bool big_endian);
// Stored samples to array elements; `out` is as large as they become.
void decode_wav(WavSample sample, bool big_endian, std::span<const std::byte> stored,
                std::span<std::byte> out);

}  // namespace npyfs
