// SPDX-License-Identifier: Apache-2.0

#include "formats/das/recording.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/bytes/error.h"
#include "formats/das/sample_types.h"
#include "formats/extents.h"
#include "formats/payloads/npz.h"
#include "formats/payloads/wav.h"

namespace npyfs {

namespace {

// What is converted is converted in pieces of this size.
constexpr std::uint64_t kChunkNbytes = std::uint64_t{256} << 10;

class PlainSamples : public Samples {
 public:
  PlainSamples(SourcePtr source, std::uint64_t offset, std::uint64_t frame_nbytes)
      : source_(std::move(source)), offset_(offset), frame_nbytes_(frame_nbytes) {}
  void read(std::uint64_t first, std::span<std::byte> out) const override {
    source_->read_at(offset_ + first * frame_nbytes_, out);
  }

 private:
  SourcePtr source_;
  std::uint64_t offset_;
  std::uint64_t frame_nbytes_;
};

class WavSamples : public Samples {
 public:
  WavSamples(SourcePtr source, const WavHeader& header)
      : source_(std::move(source)), header_(header) {}
  void read(std::uint64_t first, std::span<std::byte> out) const override {
    const std::uint64_t frames = out.size() / wav_dtype(header_.sample).itemsize / header_.channels;
    std::vector<std::byte> stored(frames * header_.frame_nbytes);
    source_->read_at(header_.data_offset + first * header_.frame_nbytes, stored);
    decode_wav(header_.sample, header_.big_endian, stored, out);
  }

 private:
  SourcePtr source_;
  WavHeader header_;
};

// One channel behind the other.
class FortranSamples : public Samples {
 public:
  FortranSamples(SourcePtr source, std::uint64_t offset, const Recording& recording)
      : source_(std::move(source)),
        offset_(offset),
        itemsize_(recording.dtype.itemsize),
        frames_(recording.frames),
        channels_(recording.channels) {}
  void read(std::uint64_t first, std::span<std::byte> out) const override {
    const std::uint64_t count = out.size() / itemsize_ / channels_;
    std::vector<std::byte> channel(count * itemsize_);
    for (std::uint64_t c = 0; c < channels_; ++c) {
      source_->read_at(offset_ + (c * frames_ + first) * itemsize_, channel);
      for (std::uint64_t frame = 0; frame < count; ++frame) {
        std::memcpy(out.data() + (frame * channels_ + c) * itemsize_,
                    channel.data() + frame * itemsize_, itemsize_);
      }
    }
  }

 private:
  SourcePtr source_;
  std::uint64_t offset_;
  std::uint64_t itemsize_;
  std::uint64_t frames_;
  std::uint64_t channels_;
};

class DecodedAudio : public DecodedGrid {
 public:
  DecodedAudio(GridLayout layout, const Recording& recording)
      : DecodedGrid(std::move(layout), {}, "decoded"), recording_(recording) {}

  void decode(std::uint64_t chunk, std::span<std::byte> out,
              DecodeContext& context) const override {
    context.require_intact(recording_.guard());
    const std::uint64_t first = chunk_begin(chunk).front();
    if (dtype() == recording_.dtype) {
      recording_.samples->read(first, out);
      return;
    }
    std::vector<std::byte> own(out.size() / dtype().itemsize * recording_.dtype.itemsize);
    recording_.samples->read(first, own);
    convert_samples(recording_.dtype, own, dtype(), out);
  }

 private:
  Recording recording_;
};

std::string lower_extension(std::string_view name) {
  std::string extension(name.substr(std::min(name.find_last_of('.'), name.size())));
  std::transform(extension.begin(), extension.end(), extension.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return extension;
}

Recording open_wav(Recording recording, const OpenContext& context) {
  const ByteSource& file = *recording.file;
  WindowReader window(file);
  const WavHeader header = parse_wav(file, window, 0, file.nbytes());
  if (header.truncated) {
    const Error cut = corrupt_at(file.name(), file.nbytes(),
                                 fmt::format("the wave ends after {} frames, expected more as its "
                                             "header says; the file is cut",
                                             header.frames));
    if (!context.permissive) {
      throw cut;
    }
    context.warn(cut.what());
  }
  recording.dtype = wav_dtype(header.sample);
  recording.frames = header.frames;
  recording.channels = header.channels;
  recording.rate_hz = header.rate_hz;
  recording.samples = std::make_shared<WavSamples>(recording.file, header);
  if (!wav_needs_decoding(header.sample, header.big_endian)) {
    recording.mapped = recording.file;
    recording.offset = header.data_offset;
  }
  return recording;
}

// `left_out`: what was said of members that are no arrays.
const StoredNpy& require_member(const Store& archive, const ByteSource& file, const char* name,
                                const std::vector<std::string>& left_out) {
  for (const StoredArray& array : archive.root.arrays) {
    if (array.name == name) {
      return std::get<StoredNpy>(array.parts.front());
    }
  }
  const std::string said = fmt::format("member {}.npy is left out: ", name);
  for (const std::string& text : left_out) {
    if (const std::size_t at = text.find(said); at != std::string::npos) {
      std::string_view why = std::string_view(text).substr(at + said.size());
      const std::string place = file.name() + ": ";
      why.remove_prefix(why.starts_with(place) ? place.size() : 0);
      throw file_error(ErrorKind::kUnsupported, file.name(), fmt::format("{}: {}", name, why));
    }
  }
  throw file_error(
      ErrorKind::kUnsupported, file.name(),
      fmt::format("it has no array {}, expected a recording: data and samplerate", name));
}

// One number, in whatever type it was saved. Labels depend on it: it is verified at once.
double read_rate(const StoredNpy& npy, const ByteSource& file, const OpenContext& context) {
  context.verifier->require_intact(npy.guard());
  std::vector<std::byte> stored(npy.header.dtype.itemsize);
  double rate = 0;
  if (*element_count(npy.header.shape) == 1 &&
      promoted_type(npy.header.dtype, DType::simple("<f8")) == DType::simple("<f8")) {
    npy.source->read_at(npy.data_offset(), stored);
    convert_samples(npy.header.dtype, stored, DType::simple("<f8"),
                    std::as_writable_bytes(std::span(&rate, 1)));
  }
  if (!(rate > 0) || !std::isfinite(rate)) {
    throw file_error(ErrorKind::kUnsupported, file.name(),
                     fmt::format("samplerate is {} {} or not above 0, expected one number",
                                 npy.header.dtype.text(), shape_text(npy.header.shape)));
  }
  return rate;
}

Recording open_npz_recording(Recording recording, OpenContext& context) {
  OpenContext own = context;
  std::vector<std::string> left_out;  // members of other kinds are nobody's loss
  own.warn = [&](const std::string& text) { left_out.push_back(text); };
  const StorePtr archive = open_npz(recording.file, own);
  const StoredNpy& data = require_member(*archive, *recording.file, "data", left_out);
  const StoredNpy& rate = require_member(*archive, *recording.file, "samplerate", left_out);
  const Shape& shape = data.header.shape;
  if (shape.empty() || shape.size() > 2) {
    throw file_error(
        ErrorKind::kUnsupported, recording.file->name(),
        fmt::format("data is {}, expected [samples, channels] or [samples]", shape_text(shape)));
  }
  const char kind = data.header.dtype.kind;
  if (kind != 'i' && kind != 'u' && kind != 'f') {
    throw file_error(
        ErrorKind::kUnsupported, recording.file->name(),
        fmt::format("data is {}, expected integers or floats", data.header.dtype.text()));
  }
  if (shape.size() == 2 && shape[1] == 0) {
    throw file_error(ErrorKind::kUnsupported, recording.file->name(),
                     fmt::format("data is {}, expected one channel or more", shape_text(shape)));
  }
  recording.dtype = data.header.dtype;
  recording.frames = shape[0];
  recording.channels = shape.size() == 2 ? shape[1] : 1;
  recording.rate_hz = read_rate(rate, *recording.file, context);
  recording.guarded_by = data.guarded_by;
  recording.record = data.record;
  recording.offset = data.data_offset();
  if (data.header.fortran_order && recording.channels > 1 && recording.frames > 1) {
    recording.samples = std::make_shared<FortranSamples>(data.source, recording.offset, recording);
  } else {
    recording.mapped = data.source;
    recording.samples = std::make_shared<PlainSamples>(
        data.source, recording.offset, recording.channels * recording.dtype.itemsize);
  }
  return recording;
}

}  // namespace

bool is_recording_name(const std::string& name) {
  const std::string extension = lower_extension(name);
  return extension == ".wav" || extension == ".npz";
}

Recording open_recording(SourcePtr file, OpenContext& context) {
  Recording recording;
  recording.name = file->name().substr(file->name().find_last_of('/') + 1);
  recording.file = std::move(file);
  std::vector<std::byte> head(std::min<std::uint64_t>(recording.file->nbytes(), 12));
  recording.file->read_at(0, head);
  return is_wav(head) || lower_extension(recording.name) == ".wav"
             ? open_wav(std::move(recording), context)
             : open_npz_recording(std::move(recording), context);
}

std::shared_ptr<const ChunkGrid> make_audio_grid(const Recording& recording, const DType& dtype) {
  const Shape shape{recording.frames, recording.channels};
  if (recording.mapped != nullptr && dtype == recording.dtype) {
    return make_mapped_grid(dtype, shape, recording.mapped, recording.offset, recording.guarded_by,
                            recording.record);
  }
  const std::uint64_t frame_nbytes =
      std::max<std::uint64_t>(recording.channels * dtype.itemsize, 1);
  const std::uint64_t rows = std::max<std::uint64_t>(kChunkNbytes / frame_nbytes, 1);
  GridLayout layout{dtype, shape, {rows, std::max<std::uint64_t>(recording.channels, 1)}, true};
  return std::make_shared<DecodedAudio>(std::move(layout), recording);
}

}  // namespace npyfs
