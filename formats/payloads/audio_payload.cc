// SPDX-License-Identifier: Apache-2.0
//
// Audio as array items [frames, channels]: plain samples are mapped, all else is decoded.

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "formats/extents.h"
#include "formats/payloads/inspected_column.h"
#include "formats/payloads/payload.h"
#include "formats/payloads/sound.h"
#include "formats/payloads/wav.h"

namespace npyfs {

namespace {

// Headers of waves rarely need more; what follows is not read.
constexpr std::size_t kWindowNbytes = 512;

// Decoders of pieces read so much at once.
constexpr std::size_t kDecoderNbytes = std::size_t{64} << 10;
constexpr std::uint64_t kWholePayload = UINT64_MAX;

// What must be known of a record to plan a read of it.
struct Sound {
  std::uint64_t frames = 0;
  std::uint32_t rate_hz = 0;
  std::uint32_t data_offset = 0;  // of a wave
  std::uint16_t channels = 0;
  WavSample sample = WavSample::kInt16;  // of a wave
  bool is_wave = false;
  bool big_endian = false;
  bool wide = false;  // of what libsndfile decodes

  bool needs_decoding() const { return !is_wave || wav_needs_decoding(sample, big_endian); }
  // As stored; only of a wave.
  std::uint64_t frame_nbytes() const { return std::uint64_t{channels} * wav_sample_nbytes(sample); }
};

// What the header of a payload says.
struct AudioHeader {
  Sound sound;
  std::optional<Error> cut_short;  // fewer samples are there than it promises
};

// Frames are cut off, not rounded.
std::uint64_t frame_at(double seconds, std::uint32_t rate_hz) {
  constexpr double kMost = 1e18;
  return static_cast<std::uint64_t>(std::min(seconds * rate_hz, kMost));
}

class AudioColumn : public InspectedColumn {
 public:
  AudioColumn(std::shared_ptr<const ByteColumn> bytes, bool named)
      : InspectedColumn(std::move(bytes)), named_(named), sounds_(size()) {}

  void look(const PayloadField& field, const AudioCuts* cuts = nullptr) {
    const RecordTable& table = field.table;
    cuts_ = cuts;
    if (cuts_ != nullptr) {
      firsts_.assign(size(), kWholePayload);
    }
    look_at_all(field, kWindowNbytes);
    cuts_ = nullptr;
    payloads_.clear();
    if (odd_rate_) {
      rate_clash_ = fmt::format("{} has {} Hz, {} has {} Hz", record_name(table, odd_rate_->record),
                                odd_rate_->rate_hz, record_name(table, first_rate_->record),
                                first_rate_->rate_hz);
    }
  }

  bool time_series() const override { return true; }
  std::optional<std::uint32_t> rate_hz() const override {
    return first_rate_ && !odd_rate_ ? std::optional(first_rate_->rate_hz) : std::nullopt;
  }
  std::string rate_clash() const override { return rate_clash_; }

  bool decoded(std::uint64_t record) const override { return sounds_[record].needs_decoding(); }

  void plan(std::uint64_t record, ByteRange range, Plan& plan) const override {
    const std::uint64_t skip = samples_of(record).begin;
    plan_stored(bytes(), record, {range.begin + skip, range.end + skip}, plan);
  }

  void decode(std::uint64_t record, std::span<std::byte> out,
              DecodeContext& context) const override {
    require_intact(record, context);
    const Sound& sound = sounds_[record];
    if (sound.is_wave) {
      decode_wave(record, out);
      return;
    }
    // A payload that is decoded as a whole is read at once; of a piece, only what is needed.
    RecordBytes payload(bytes(), is_piece(record) ? kDecoderNbytes : kMostStoredNbytes);
    payload.open(record);
    const std::uint64_t first = is_piece(record) ? firsts_[record] : 0;
    try {
      decode_sound({sound.frames, sound.channels, sound.rate_hz, sound.wide}, payload, first,
                   first + sound.frames, out);
    } catch (const Error& error) {
      throw error.kind() == ErrorKind::kCorrupt ? fault(record, error.what()) : error;
    }
  }

  const Damage* damage_of(std::uint64_t record) const {
    return is_piece(record) ? damage(record) : bytes().damage(record);
  }

  // Replaces `out` by what is stored of the piece, or of the whole payload.
  bool locate(std::uint64_t record, std::vector<Extent>& out) const {
    const bool present = bytes().locate(record, out);
    if (present && is_piece(record) && sounds_[record].is_wave) {
      narrow(samples_of(record), out);
    }
    return present;
  }
  Guard guard(std::uint64_t record) const { return bytes().guard(record); }

 protected:
  void look_at(std::uint64_t record, PayloadBytes& payload) override {
    const AudioHeader found = cuts_ != nullptr ? payload_of(record, payload) : read_header(payload);
    Sound sound = found.sound;
    if (const auto cut = cuts_ != nullptr ? cuts_->find(record) : std::nullopt) {
      cut_sound(record, *cut, found.cut_short.has_value(), sound);
    } else if (found.cut_short) {
      set_damaged(*found.cut_short, sound.frames * sound.channels * dtype_of(sound).itemsize);
    } else if (sound.needs_decoding()) {
      require_readable(payload);
    }
    const std::uint64_t nbytes = sound.frames * sound.channels * dtype_of(sound).itemsize;
    if (!sound.is_wave && nbytes > kMostSoundNbytes) {
      throw payload.fault(0, fmt::format("the audio has {} frames, {} bytes when it is decoded, "
                                         "expected at most {}",
                                         sound.frames, nbytes, kMostSoundNbytes));
    }
    sounds_[record] = sound;
    if (!first_rate_) {
      first_rate_ = {record, sound.rate_hz};
    } else if (!odd_rate_ && sound.rate_hz != first_rate_->rate_hz) {
      odd_rate_ = {record, sound.rate_hz};
    }
  }

  bool alike(std::uint64_t a, std::uint64_t b) const override {
    return one_array(a, b) && sounds_[a].rate_hz == sounds_[b].rate_hz;
  }
  bool one_array(std::uint64_t a, std::uint64_t b) const override {
    return sounds_[a].channels == sounds_[b].channels &&
           dtype_of(sounds_[a]) == dtype_of(sounds_[b]);
  }
  void describe(std::uint64_t record, Item& item) const override {
    item.dtype = dtype_of(sounds_[record]);
    item.shape.assign({sounds_[record].frames, sounds_[record].channels});
  }

 private:
  bool is_piece(std::uint64_t record) const {
    return !firsts_.empty() && firsts_[record] != kWholePayload;
  }

  // Where in the payload the record's samples lie. Only of a wave.
  ByteRange samples_of(std::uint64_t record) const {
    const Sound& sound = sounds_[record];
    const std::uint64_t frame_nbytes = sound.frame_nbytes();
    const std::uint64_t begin =
        sound.data_offset + (is_piece(record) ? firsts_[record] * frame_nbytes : 0);
    return {begin, begin + sound.frames * frame_nbytes};
  }

  // Part by part: the samples of a long recording need not be held twice.
  void decode_wave(std::uint64_t record, std::span<std::byte> out) const {
    constexpr std::uint64_t kPartSamples = std::uint64_t{1} << 18;
    const Sound& sound = sounds_[record];
    const std::uint64_t from = wav_sample_nbytes(sound.sample);
    const std::uint64_t to = dtype_of(sound).itemsize;
    const ByteRange samples = samples_of(record);
    std::vector<std::byte> stored;
    for (std::uint64_t at = samples.begin; at < samples.end; at += stored.size()) {
      stored.resize(std::min(kPartSamples * from, samples.end - at));
      read_stored(bytes(), record, at, stored);
      const std::uint64_t nbytes = stored.size() / from * to;
      decode_wav(sound.sample, sound.big_endian, stored, out.first(nbytes));
      out = out.subspan(nbytes);
    }
  }

  // Leaves of the extents, which follow each other, what lies in `range`.
  static void narrow(ByteRange range, std::vector<Extent>& extents) {
    std::uint64_t at = 0;
    std::vector<Extent> narrowed;
    for (const Extent& extent : extents) {
      const std::uint64_t begin = std::max(at, range.begin);
      const std::uint64_t end = std::min(at + extent.nbytes, range.end);
      if (begin < end) {
        narrowed.push_back({extent.source, extent.offset + (begin - at), end - begin});
      }
      at += extent.nbytes;
    }
    extents = std::move(narrowed);
  }

  // The header of a payload that other records may be pieces of, too; its fault is thrown to each.
  AudioHeader payload_of(std::uint64_t record, PayloadBytes& payload) {
    std::vector<Extent> extents;
    bytes().locate(record, extents);
    const Extent& place = extents.front();
    const auto [at, is_new] = payloads_.try_emplace({place.source, place.offset});
    if (is_new) {
      try {
        at->second.header = read_header(payload);
      } catch (const Error& error) {
        at->second.fault = error;
      }
    }
    if (at->second.fault) {
      throw Error(*at->second.fault);
    }
    return at->second.header;
  }

  void cut_sound(std::uint64_t record, const AudioCut& cut, bool truncated, Sound& sound) {
    const std::uint64_t start = frame_at(cut.start, sound.rate_hz);
    const std::uint64_t last = std::min(frame_at(cut.end, sound.rate_hz), sound.frames);
    if (truncated) {
      cuts_->report(record, CutFinding::kOfTruncatedWave);
    }
    if (start > sound.frames) {
      cuts_->report(record, CutFinding::kBeginsBehindEnd);
    }
    firsts_[record] = std::min(start, last);
    sound.frames = last - firsts_[record];
  }

  AudioHeader read_header(PayloadBytes& payload) const {
    const auto head = payload.at_most(0, kMagicNbytes);
    if (!is_sound(head)) {
      throw not_audio(payload);
    }
    AudioHeader found;
    found.sound.is_wave = is_wav(head) && read_wave(payload, found);
    if (!found.sound.is_wave) {
      if (cuts_ == nullptr) {
        require_readable(payload);
      }
      const SoundInfo info = read_sound_info(payload);
      found.sound.frames = info.frames;
      found.sound.channels = static_cast<std::uint16_t>(info.channels);
      found.sound.rate_hz = info.rate_hz;
      found.sound.wide = info.wide;
    }
    return found;
  }

  // False for a wave of samples that only libsndfile understands.
  static bool read_wave(PayloadBytes& payload, AudioHeader& found) {
    Sound& sound = found.sound;
    WavHeader header;
    try {
      header = parse_wav(payload);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kUnsupported) {
        throw;
      }
      require_decodable(payload, error);
      require_whole(payload);
      return false;
    }
    if (header.data_offset > UINT32_MAX) {
      throw payload.fault(0, "the samples begin behind 4 GiB, expected them before");
    }
    if (header.truncated) {
      found.cut_short = payload.fault(
          header.data_offset,
          fmt::format("the wave has {} frames, expected more by its header; it is cut short",
                      header.frames));
    }
    sound.frames = header.frames;
    sound.channels = static_cast<std::uint16_t>(header.channels);
    sound.rate_hz = header.rate_hz;
    sound.data_offset = static_cast<std::uint32_t>(header.data_offset);
    sound.sample = header.sample;
    sound.big_endian = header.big_endian;
    return true;
  }

  // What neither we nor libsndfile understand is damaged, for the reason that we know.
  static void require_decodable(PayloadBytes& payload, const Error& why) {
    try {
      read_sound_info(payload);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kCorrupt) {
        throw;
      }
      throw Error(ErrorKind::kCorrupt, why.what());
    }
  }

  // libsndfile takes what is there of a file that was cut.
  static void require_whole(PayloadBytes& payload) {
    constexpr std::uint32_t kUnknownFrom = 0x7FFFF000;  // what writers to a pipe leave behind
    const auto riff = payload.number<std::uint32_t>(4);
    const bool native = payload.at(0, 4)[3] == std::byte{'F'};
    const std::uint64_t nbytes = std::uint64_t{native ? riff : __builtin_bswap32(riff)} + 8;
    if (riff != 0 && nbytes < kUnknownFrom && nbytes > payload.nbytes()) {
      throw payload.fault(4,
                          fmt::format("the size of the wave is {}, expected at most {}; it is cut "
                                      "short",
                                      nbytes, payload.nbytes()));
    }
  }

  // Where a name says that it is audio it is damaged; else it is something else.
  Error not_audio(PayloadBytes& payload) const {
    const Error error = payload.fault(0, "the payload is no audio, expected WAV, flac, ogg or mp3");
    return named_ ? error : Error(ErrorKind::kUnsupported, error.what());
  }

  static const DType& dtype_of(const Sound& sound) {
    static const DType kTypes[] = {wav_dtype(WavSample::kUint8),   wav_dtype(WavSample::kInt16),
                                   wav_dtype(WavSample::kInt24),   wav_dtype(WavSample::kInt32),
                                   wav_dtype(WavSample::kFloat32), wav_dtype(WavSample::kFloat64)};
    const WavSample decoded = sound.wide ? WavSample::kInt32 : WavSample::kInt16;
    return kTypes[static_cast<std::size_t>(sound.is_wave ? sound.sample : decoded)];
  }

  bool named_;
  std::vector<Sound> sounds_;
  // The first frame of each piece; kWholePayload for a record that is no piece. Empty if there are
  // no pieces.
  std::vector<std::uint64_t> firsts_;
  // While it looks at pieces.
  struct Seen {
    AudioHeader header;
    std::optional<Error> fault;
  };
  const AudioCuts* cuts_ = nullptr;
  std::map<std::pair<const ByteSource*, std::uint64_t>, Seen> payloads_;
  struct Rate {
    std::uint64_t record;
    std::uint32_t rate_hz;
  };
  std::optional<Rate> first_rate_;
  std::optional<Rate> odd_rate_;
  std::string rate_clash_;
};

// What is stored of the pieces.
class PieceBytes : public ByteColumn {
 public:
  explicit PieceBytes(std::shared_ptr<const AudioColumn> audio) : audio_(std::move(audio)) {}

  std::uint64_t size() const override { return audio_->size(); }
  bool locate(std::uint64_t record, std::vector<Extent>& out) const override {
    return audio_->locate(record, out);
  }
  const Damage* damage(std::uint64_t record) const override { return audio_->damage_of(record); }
  Guard guard(std::uint64_t record) const override { return audio_->guard(record); }

 private:
  std::shared_ptr<const AudioColumn> audio_;
};

}  // namespace

AudioPieces make_audio_pieces(const PayloadField& field, const AudioCuts& cuts) {
  auto column = std::make_shared<AudioColumn>(field.bytes, field.named);
  column->look(field, &cuts);
  return {column, std::make_shared<PieceBytes>(column)};
}

std::shared_ptr<const Column> make_audio_column(const PayloadField& field) {
  auto column = std::make_shared<AudioColumn>(field.bytes, field.named);
  column->look(field);
  return column;
}

}  // namespace npyfs
