// SPDX-License-Identifier: Apache-2.0
//
// Compressed audio: flac, ogg (Vorbis, Opus, FLAC), mp3, and the kinds of WAV that are not plain
// samples. libsndfile decodes; what can be known from a header is read by ourselves.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "formats/payloads/payload_bytes.h"

namespace npyfs {

struct SoundInfo {
  std::uint64_t frames = 0;
  std::uint32_t channels = 0;
  std::uint32_t rate_hz = 0;
  // The samples have more than 16 bits and are decoded to int32, left-justified; else to int16.
  bool wide = false;
};

// Whether `head` begins as something that libsndfile is to decode. mp3 without an ID3 tag begins
// with a few set bits, which other data may do too: ask only where the name says that it is audio.
bool is_sound(std::span<const std::byte> head);

// flac: from STREAMINFO. ogg: from the first pages and the last, which libsndfile finds. mp3: from
// every frame's header, that is from one pass over the payload; nothing is decoded. Throws kCorrupt
// where libsndfile cannot open it or it claims more than its bytes can hold.
SoundInfo read_sound_info(PayloadBytes& payload);

// Decodes all frames, interleaved. Throws kCorrupt, without a place, where they are not what `info`
// says or where the decoder finds damage.
void decode_sound(const SoundInfo& info, std::span<const std::byte> stored,
                  std::span<std::byte> out);

}  // namespace npyfs
