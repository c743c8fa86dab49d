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

  std::uint64_t frame_nbytes() const { return std::uint64_t{channels} * (wide ? 4 : 2); }
};

// An item is decoded whole: it has at most so many bytes.
inline constexpr std::uint64_t kMostSoundNbytes = std::uint64_t{2} << 30;

// Whether `head` begins as something that libsndfile is to decode. mp3 without an ID3 tag begins
// with a few set bits, which other data may do too: ask only where the name says that it is audio.
bool is_sound(std::span<const std::byte> head);

// flac: from STREAMINFO. ogg: from the first pages and the last, which libsndfile finds. mp3: from
// every frame's header, that is from one pass over the payload; nothing is decoded. Throws kCorrupt
// where libsndfile cannot open it or it claims more than its bytes can hold.
SoundInfo read_sound_info(PayloadBytes& payload);

// Decodes frames [first, last) of what `info` describes, interleaved. They are the same samples as
// in the whole: a lossy decoder that begins elsewhere yields others, so only flac is entered where
// the piece begins, all else is decoded from its start. Throws kCorrupt, without a place, where the
// payload is not what `info` says or the decoder finds damage.
void decode_sound(const SoundInfo& info, PayloadBytes& payload, std::uint64_t first,
                  std::uint64_t last, std::span<std::byte> out);

}  // namespace npyfs
