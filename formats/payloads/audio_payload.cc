// SPDX-License-Identifier: Apache-2.0
//
// Audio as array items [frames, channels]: plain samples are mapped, all else is decoded.

#include <fmt/format.h>

#include "formats/extents.h"
#include "formats/payloads/inspected_column.h"
#include "formats/payloads/payload.h"
#include "formats/payloads/sound.h"
#include "formats/payloads/wav.h"

namespace npyfs {

namespace {

// Headers of waves rarely need more; what follows is not read.
constexpr std::size_t kWindowNbytes = 512;

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
};

class AudioColumn : public InspectedColumn {
 public:
  AudioColumn(std::shared_ptr<const ByteColumn> bytes, bool named)
      : InspectedColumn(std::move(bytes)), named_(named), sounds_(size()) {}

  void look(const RecordTable& table) {
    look_at_all(table, kWindowNbytes, named_);
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

  bool decoded(std::uint64_t record) const override {
    const Sound& sound = sounds_[record];
    return !sound.is_wave || wav_needs_decoding(sound.sample, sound.big_endian);
  }

  void plan(std::uint64_t record, ByteRange range, Plan& plan) const override {
    const std::uint64_t skip = sounds_[record].data_offset;
    plan_stored(bytes(), record, {range.begin + skip, range.end + skip}, plan);
  }

  void decode(std::uint64_t record, std::span<std::byte> out,
              DecodeContext& context) const override {
    const Sound& sound = sounds_[record];
    const std::vector<std::byte> stored = read_whole(record, context);
    if (sound.is_wave) {
      decode_wav(sound.sample, sound.big_endian, std::span(stored).subspan(sound.data_offset), out);
      return;
    }
    try {
      decode_sound({sound.frames, sound.channels, sound.rate_hz, sound.wide}, stored, out);
    } catch (const Error& error) {
      throw error.kind() == ErrorKind::kCorrupt ? fault(record, error.what()) : error;
    }
  }

 protected:
  void look_at(std::uint64_t record, PayloadBytes& payload) override {
    const auto head = payload.at_most(0, kMagicNbytes);
    if (!is_sound(head)) {
      throw not_audio(payload);
    }
    Sound sound;
    sound.is_wave = is_wav(head) && read_wave(payload, sound);
    if (!sound.is_wave || wav_needs_decoding(sound.sample, sound.big_endian)) {
      require_readable(payload);
    }
    if (!sound.is_wave) {
      const SoundInfo info = read_sound_info(payload);
      sound.frames = info.frames;
      sound.channels = static_cast<std::uint16_t>(info.channels);
      sound.rate_hz = info.rate_hz;
      sound.wide = info.wide;
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
  // False for a wave of samples that only libsndfile understands.
  bool read_wave(PayloadBytes& payload, Sound& sound) {
    WavHeader header;
    try {
      header = parse_wav(payload);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kUnsupported) {
        throw;
      }
      require_readable(payload);
      require_decodable(payload, error);
      require_whole(payload);
      return false;
    }
    if (header.data_offset > UINT32_MAX) {
      throw payload.fault(0, "the samples begin behind 4 GiB, expected them before");
    }
    if (header.truncated) {
      set_damaged(payload.fault(header.data_offset,
                                fmt::format("the wave has {} frames, expected more by its header; "
                                            "it is cut short",
                                            header.frames)),
                  header.frames * header.channels * wav_dtype(header.sample).itemsize);
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
  struct Rate {
    std::uint64_t record;
    std::uint32_t rate_hz;
  };
  std::optional<Rate> first_rate_;
  std::optional<Rate> odd_rate_;
  std::string rate_clash_;
};

}  // namespace

std::shared_ptr<const Column> make_audio_column(const PayloadField& field) {
  auto column = std::make_shared<AudioColumn>(field.bytes, field.named);
  column->look(field.table);
  return column;
}

}  // namespace npyfs
