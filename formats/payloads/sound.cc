// SPDX-License-Identifier: Apache-2.0
//
// [xiph.org: flac/format.html METADATA_BLOCK_STREAMINFO; libsndfile: docs/api.md virtual I/O]

#include "formats/payloads/sound.h"

#include <fmt/format.h>
#include <sndfile.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <exception>
#include <memory>
#include <string_view>
#include <vector>

#include "formats/bytes/text_view.h"
#include "formats/payloads/wav.h"

namespace npyfs {

namespace {

// The best that a codec can do with silence, with room; what claims more is no header of ours.
constexpr std::uint64_t kMostNbytesPerByte = 16384;
constexpr std::uint64_t kAlwaysAllowedNbytes = std::uint64_t{64} << 20;
constexpr std::uint32_t kMostChannels = 1024;  // libsndfile's own limit

// "fLaC", the header of the first block, which is STREAMINFO, and STREAMINFO.
constexpr std::size_t kFlacHeadNbytes = 42;

// What libsndfile reads from. It is C: nothing may be thrown through it.
struct VirtualFile {
  PayloadBytes& payload;
  sf_count_t at = 0;
  std::exception_ptr thrown;
};

sf_count_t virtual_nbytes(void* user) {
  return static_cast<sf_count_t>(static_cast<VirtualFile*>(user)->payload.nbytes());
}

sf_count_t virtual_seek(sf_count_t offset, int whence, void* user) {
  auto& file = *static_cast<VirtualFile*>(user);
  const sf_count_t end = virtual_nbytes(user);
  const sf_count_t base = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? file.at : end;
  sf_count_t to = 0;
  if (__builtin_add_overflow(base, offset, &to)) {
    return -1;
  }
  file.at = std::clamp<sf_count_t>(to, 0, end);
  return file.at;
}

sf_count_t virtual_read(void* out, sf_count_t nbytes, void* user) {
  auto& file = *static_cast<VirtualFile*>(user);
  if (nbytes <= 0 || file.thrown != nullptr) {
    return 0;
  }
  try {
    const auto bytes =
        file.payload.at_most(static_cast<std::uint64_t>(file.at), static_cast<std::size_t>(nbytes));
    std::copy(bytes.begin(), bytes.end(), static_cast<std::byte*>(out));
    file.at += static_cast<sf_count_t>(bytes.size());
    return static_cast<sf_count_t>(bytes.size());
  } catch (...) {
    file.thrown = std::current_exception();
    return 0;
  }
}

sf_count_t virtual_write(const void* /*bytes*/, sf_count_t /*nbytes*/, void* /*user*/) { return 0; }

sf_count_t virtual_tell(void* user) { return static_cast<VirtualFile*>(user)->at; }

struct CloseSound {
  void operator()(SNDFILE* sound) const { sf_close(sound); }
};
using SoundPtr = std::unique_ptr<SNDFILE, CloseSound>;

// Null where libsndfile cannot open it. `file` must live as long.
SoundPtr open_sound(VirtualFile& file, SF_INFO& info) {
  SF_VIRTUAL_IO io = {virtual_nbytes, virtual_seek, virtual_read, virtual_write, virtual_tell};
  info = {};
  SoundPtr sound(sf_open_virtual(&io, SFM_READ, &info, &file));
  if (file.thrown != nullptr) {
    std::rethrow_exception(file.thrown);
  }
  return sound;
}

// One line of what libsndfile says.
std::string error_text(SNDFILE* sound) {
  std::string text = printable(sf_strerror(sound));
  while (text.ends_with('.') || text.ends_with(' ')) {
    text.pop_back();
  }
  return text;
}

bool is_wide(int format) {
  switch (format & SF_FORMAT_SUBMASK) {
    case SF_FORMAT_PCM_24:
    case SF_FORMAT_PCM_32:
      return true;
    default:
      return false;
  }
}

// Decoded to float, by codecs that may overshoot.
bool is_lossy(int format) {
  switch (format & SF_FORMAT_SUBMASK) {
    case SF_FORMAT_VORBIS:
    case SF_FORMAT_OPUS:
    case SF_FORMAT_MPEG_LAYER_I:
    case SF_FORMAT_MPEG_LAYER_II:
    case SF_FORMAT_MPEG_LAYER_III:
      return true;
    default:
      return false;
  }
}

// Whether libsndfile finds any frame exactly: of frames that know their number and depend on none
// before them.
bool can_enter(const SF_INFO& found) {
  return (found.format & SF_FORMAT_TYPEMASK) == SF_FORMAT_FLAC && found.frames != SF_COUNT_MAX;
}

// Nothing where STREAMINFO does not say how long it is: a stream of unknown end.
bool read_flac_info(PayloadBytes& payload, SoundInfo& info) {
  const auto head = payload.at_most(0, kFlacHeadNbytes);
  if (head.size() < kFlacHeadNbytes || !as_text(head).starts_with("fLaC") ||
      (head[4] & std::byte{0x7f}) != std::byte{0}) {
    return false;
  }
  // 20 bits of rate, 3 of channels - 1, 5 of bits - 1, 36 of samples.
  std::uint64_t packed = 0;
  for (std::size_t i = 18; i < 26; ++i) {
    packed = packed << 8 | static_cast<std::uint64_t>(head[i]);
  }
  info.rate_hz = static_cast<std::uint32_t>(packed >> 44);
  info.channels = static_cast<std::uint32_t>(packed >> 41 & 7) + 1;
  const auto bits = static_cast<std::uint32_t>(packed >> 36 & 31) + 1;
  info.wide = bits > 16;
  info.frames = packed & 0xFFFFFFFFF;
  if (bits != 8 && bits != 16 && bits != 24) {
    throw payload.fault(18, fmt::format("the flac has {} bits per sample, expected 8, 16 or 24, "
                                        "which libsndfile decodes",
                                        bits));
  }
  return info.frames > 0 && info.rate_hz > 0;
}

// Counts by decoding: for a stream whose header does not know its end.
std::uint64_t count_frames(SNDFILE* sound, std::uint32_t channels, std::uint64_t most) {
  constexpr sf_count_t kPart = 4096;
  std::vector<float> part(static_cast<std::size_t>(kPart) * channels);
  std::uint64_t frames = 0;
  for (sf_count_t got = kPart; got > 0 && frames <= most;) {
    got = sf_readf_float(sound, part.data(), kPart);
    frames += static_cast<std::uint64_t>(std::max<sf_count_t>(got, 0));
  }
  return frames;
}

// Frames that so many bytes may hold.
std::uint64_t most_frames(const PayloadBytes& payload, const SoundInfo& info) {
  constexpr std::uint64_t kMostNbytes = std::uint64_t{1} << 48;
  return (kAlwaysAllowedNbytes +
          std::min(payload.nbytes(), kMostNbytes / kMostNbytesPerByte) * kMostNbytesPerByte) /
         info.frame_nbytes();
}

void require_plausible(PayloadBytes& payload, const SoundInfo& info) {
  const std::uint64_t most = most_frames(payload, info);
  if (info.frames > most) {
    throw payload.fault(0, fmt::format("the number of frames is {}, expected at most {} for {} "
                                       "bytes of compressed audio",
                                       info.frames, most, payload.nbytes()));
  }
}

// Frames [first, last), read in parts.
struct SoundReader {
  SNDFILE* sound;
  const VirtualFile& file;
  std::uint32_t channels;
  std::uint64_t at;  // of the next frame that libsndfile yields
  std::uint64_t first;
  std::uint64_t last;

  // Reads by `read` and hands the samples wanted to `store`.
  template <typename T, typename Read, typename Store>
  void run(const Read& read, const Store& store) {
    constexpr sf_count_t kPart = 4096;
    std::vector<T> part(static_cast<std::size_t>(kPart) * channels);
    while (at < last) {
      const auto wanted = std::min<sf_count_t>(kPart, static_cast<sf_count_t>(last - at));
      const sf_count_t got = read(sound, part.data(), wanted);
      if (got != wanted || sf_error(sound) != SF_ERR_NO_ERROR) {
        fail(got);
      }
      const std::uint64_t skipped = std::min<std::uint64_t>(first - std::min(first, at), got);
      store(std::span<const T>(part)
                .first(static_cast<std::size_t>(got) * channels)
                .subspan(skipped * channels));
      at += static_cast<std::uint64_t>(got);
    }
  }

  [[noreturn]] void fail(sf_count_t got) const {
    if (file.thrown != nullptr) {
      std::rethrow_exception(file.thrown);
    }
    const bool failed = sf_error(sound) != SF_ERR_NO_ERROR;
    throw Error(ErrorKind::kCorrupt,
                fmt::format("the audio ends or is damaged behind frame {}, expected {} frames{}",
                            at + static_cast<std::uint64_t>(std::max<sf_count_t>(got, 0)), last,
                            failed ? " (" + error_text(sound) + ")" : ""));
  }
};

}  // namespace

bool is_sound(std::span<const std::byte> head) {
  const std::string_view text = as_text(head);
  const bool frame_sync = head.size() >= 2 && head[0] == std::byte{0xff} &&
                          (head[1] & std::byte{0xe6}) == std::byte{0xe2};
  return text.starts_with("fLaC") || text.starts_with("OggS") || text.starts_with("ID3") ||
         frame_sync || is_wav(head);
}

SoundInfo read_sound_info(PayloadBytes& payload) {
  SoundInfo info;
  if (!read_flac_info(payload, info)) {
    VirtualFile file{payload, 0, nullptr};
    SF_INFO found;
    const SoundPtr sound = open_sound(file, found);
    if (sound == nullptr) {
      throw payload.fault(0, fmt::format("the audio cannot be opened: {}; it is damaged or of a "
                                         "kind that libsndfile does not know",
                                         error_text(nullptr)));
    }
    if (found.channels <= 0 || static_cast<std::uint32_t>(found.channels) > kMostChannels ||
        found.samplerate <= 0 || found.frames < 0) {
      throw payload.fault(0,
                          fmt::format("the audio has {} frames of {} channels at {} Hz, expected "
                                      "all to be known",
                                      found.frames, found.channels, found.samplerate));
    }
    info.frames = static_cast<std::uint64_t>(found.frames);
    info.channels = static_cast<std::uint32_t>(found.channels);
    info.rate_hz = static_cast<std::uint32_t>(found.samplerate);
    info.wide = is_wide(found.format);
    if (found.frames == SF_COUNT_MAX) {
      info.frames = count_frames(
          sound.get(), info.channels,
          std::min(most_frames(payload, info), kMostSoundNbytes / info.frame_nbytes()));
      // An error of the decoder is no end.
      if (file.thrown == nullptr && sf_error(sound.get()) != SF_ERR_NO_ERROR) {
        throw payload.fault(0, fmt::format("the audio is damaged behind frame {} ({})", info.frames,
                                           error_text(sound.get())));
      }
    }
    // Nor is one of reading.
    if (file.thrown != nullptr) {
      std::rethrow_exception(file.thrown);
    }
  }
  require_plausible(payload, info);
  return info;
}

void decode_sound(const SoundInfo& info, PayloadBytes& payload, std::uint64_t first,
                  std::uint64_t last, std::span<std::byte> out) {
  VirtualFile file{payload, 0, nullptr};
  SF_INFO found;
  const SoundPtr sound = open_sound(file, found);
  if (sound == nullptr) {
    throw Error(ErrorKind::kCorrupt,
                fmt::format("the audio cannot be opened: {}", error_text(nullptr)));
  }
  if (static_cast<std::uint32_t>(found.channels) != info.channels ||
      is_wide(found.format) != info.wide) {
    throw Error(ErrorKind::kCorrupt,
                fmt::format("the audio has {} channels, expected the {} that its header has",
                            found.channels, info.channels));
  }
  SoundReader frames{sound.get(), file, info.channels, 0, first, last};
  if (first > 0 && can_enter(found)) {
    frames.at = first;
    if (sf_seek(sound.get(), static_cast<sf_count_t>(first), SEEK_SET) !=
        static_cast<sf_count_t>(first)) {
      frames.fail(0);
    }
  }
  std::byte* to = out.data();
  const auto copy = [&](auto part) {
    if (!part.empty()) {  // a piece may have no samples, and nowhere to put them
      std::memcpy(to, part.data(), part.size_bytes());
      to += part.size_bytes();
    }
  };
  if (info.wide) {
    frames.run<int>(sf_readf_int, copy);
  } else if (!is_lossy(found.format)) {
    frames.run<short>(sf_readf_short, copy);
  } else {
    // As libsndfile's own int16, but that what a lossy codec makes louder than full scale does not
    // wrap around.
    frames.run<float>(sf_readf_float, [&](std::span<const float> part) {
      for (const float value : part) {
        const float scaled = std::isnan(value) ? 0 : std::rint(value * 32767.0F);
        const auto sample = static_cast<std::int16_t>(std::clamp(scaled, -32768.0F, 32767.0F));
        std::memcpy(to, &sample, sizeof sample);
        to += sizeof sample;
      }
    });
  }
  if (file.thrown != nullptr) {
    std::rethrow_exception(file.thrown);
  }
}

}  // namespace npyfs
