// SPDX-License-Identifier: Apache-2.0
//
// [kaldi-asr/kaldi:src/featbin/extract-segments.cc]

#include "formats/kaldi/segments.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "formats/bytes/fault_tally.h"
#include "formats/bytes/key_order.h"
#include "formats/bytes/line_reader.h"
#include "formats/bytes/words.h"
#include "formats/kaldi/script_lines.h"

namespace npyfs {

namespace {

constexpr std::size_t kMostSegmentLineNbytes = 1 << 20;
// Seconds. Kaldi has them as float32, and so the least bit decides as it does there.
constexpr float kMostOvershoot = 0.5F;
constexpr float kShortest = 0.1F;
constexpr double kToTheEnd = -1;

struct SegmentLine {
  std::uint32_t number = 0;
  double start = 0;
  double end = 0;
  std::optional<std::uint32_t> channel;
};

template <typename T>
bool parse_whole(std::string_view word, T& value) {
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  return error == std::errc() && end == word.data() + word.size();
}

struct Words {
  std::string_view utterance;
  std::string_view recording;
};

// Why Kaldi skips the line whatever the recording is, or null.
const char* parse_segment(std::string_view text, SegmentLine& line, Words& named) {
  std::vector<std::string_view> words;
  for_each_word(text, [&](std::string_view word) { words.push_back(word); });
  if (words.size() != 4 && words.size() != 5) {
    return "the line has not four or five words: utterance, recording, start, end[, channel]";
  }
  if (!parse_whole(words[2], line.start) || !parse_whole(words[3], line.end) ||
      !std::isfinite(line.start) || !std::isfinite(line.end)) {
    return "its third and fourth word are not start and end in seconds";
  }
  const bool to_the_end = line.end == kToTheEnd;
  if (line.start < 0 || (!to_the_end && (line.end <= 0 || line.start >= line.end))) {
    return "the segment is empty or begins before 0";
  }
  std::uint32_t channel = 0;
  if (words.size() == 5) {
    if (!parse_whole(words[4], channel) || channel > INT32_MAX) {
      return "its fifth word is no channel";
    }
    line.channel = channel;
  }
  named = {words[0], words[1]};
  return nullptr;
}

struct Frames {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
};

// What of a recording a line means; nothing where Kaldi skips the line.
std::optional<Frames> find_frames(const SegmentLine& line, std::uint32_t frames,
                                  std::uint32_t rate) {
  const float seconds = static_cast<float>(frames) / static_cast<float>(rate);
  const float most = seconds + kMostOvershoot;
  if (line.start > seconds || line.end > most) {
    return std::nullopt;
  }
  const double end = line.end < 0 || line.end > seconds ? seconds : line.end;
  if (end - line.start < kShortest) {
    return std::nullopt;
  }
  const auto first = static_cast<std::uint64_t>(line.start * rate + 0.5);
  const auto last = std::min<std::uint64_t>(static_cast<std::uint64_t>(end * rate + 0.5), frames);
  if (first >= last) {
    return std::nullopt;
  }
  return Frames{static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(last - first)};
}

class Cutter {
 public:
  Cutter(const SourcePtr& segments, ObjectIndex recordings, OpenContext& context)
      : segments_(segments), recordings_(std::move(recordings)), context_(context) {}

  ObjectIndex cut() {
    StringList utterances;
    StringList wanted;
    std::vector<SegmentLine> lines;
    LineReader reader(*segments_, kMostSegmentLineNbytes);
    for (std::string_view text; reader.next(text);) {
      SegmentLine line;
      Words words;
      line.number = reader.number();
      if (text.size() > kMostSegmentLineNbytes) {
        throw line_error(*segments_, line.number, "the line is longer than 1 MiB, expected less");
      }
      if (const char* why = parse_segment(text, line, words)) {
        skip(line.number, why);
        continue;
      }
      lines.push_back(line);
      utterances.append(words.utterance);
      wanted.append(words.recording);
    }
    const auto rows = match_keys(wanted, recordings_.keys, "wav.scp");
    for (std::size_t i = 0; i < lines.size(); ++i) {
      add(lines[i], utterances[i], wanted[i], rows[i]);
    }
    return finish();
  }

 private:
  // In Kaldi's order: a segment that lies outside is skipped before its channel is asked for.
  void add(const SegmentLine& line, std::string_view utterance, std::string_view name,
           std::uint64_t recording) {
    if (recording == kNoRow) {
      skip(line.number, fmt::format("wav.scp has no recording '{}'", printable(name)));
      return;
    }
    if (const Damage* damage = recordings_.damage.find(recording)) {
      index_.damage.add(index_.objects.size(), damage->error.said(), [&] { return *damage; });
      append(utterance, {});
      return;
    }
    const Object& wave = recordings_.objects[recording];
    if (!is_wave(wave.kind)) {
      throw line_error(*segments_, line.number,
                       fmt::format("recording '{}' is a {}, expected a wave", printable(name),
                                   kind_name(wave.kind)));
    }
    const auto frames = find_frames(line, wave.rows, rate_of(recording, wave));
    if (!frames) {
      skip(line.number, "the segment lies outside of its recording or is shorter than 0.1 s");
      return;
    }
    if (wave.cols > 1 && !line.channel) {
      throw line_error(*segments_, line.number,
                       fmt::format("recording '{}' has {} channels, expected a fifth word that "
                                   "names one",
                                   printable(name), wave.cols));
    }
    if (line.channel.value_or(0) >= wave.cols) {
      skip(line.number, fmt::format("recording '{}' has {} channels, which are counted from 0",
                                    printable(name), wave.cols));
      return;
    }
    append(utterance, piece_of(wave, *frames, line.channel.value_or(0)));
  }

  void append(std::string_view utterance, const Object& object) {
    index_.objects.push_back(object);
    index_.keys.append(utterance);
  }

  static Object piece_of(const Object& wave, const Frames& frames, std::uint32_t channel) {
    const std::uint64_t frame_nbytes = std::uint64_t{wav_sample_nbytes(wave.sample)} * wave.cols;
    Object piece = wave;
    piece.kind = ObjectKind::kPcm;
    piece.offset = wave.offset + wave.header_nbytes + frames.first * frame_nbytes;
    piece.header_nbytes = 0;
    piece.nbytes = frames.count * frame_nbytes;
    piece.rows = frames.count;
    if (wave.cols > 1) {
      piece.channels = static_cast<std::uint16_t>(wave.cols);
      piece.channel = static_cast<std::uint16_t>(channel);
      piece.cols = 1;
    }
    return piece;
  }

  // Where recordings differ, their headers are asked again, once for the segments of one.
  std::uint32_t rate_of(std::uint64_t recording, const Object& wave) {
    if (recordings_.rate_hz) {
      return *recordings_.rate_hz;
    }
    if (recording != last_recording_) {
      const ByteSource& source = *recordings_.sources[wave.source];
      WindowReader window(source);
      last_rate_ = parse_wav(source, window, wave.offset, source.nbytes() - wave.offset).rate_hz;
      last_recording_ = recording;
    }
    return last_rate_;
  }

  void skip(std::uint32_t number, const std::string& why) {
    skipped_.add(line_error(*segments_, number, why), number);
  }

  ObjectIndex finish() {
    skipped_.tell(context_.warn);
    index_.sources = std::move(recordings_.sources);
    index_.more_sources = std::move(recordings_.more_sources);
    index_.more_sources.push_back(segments_);
    index_.rate_hz = recordings_.rate_hz;
    return std::move(index_);
  }

  SourcePtr segments_;
  ObjectIndex recordings_;
  OpenContext& context_;
  ObjectIndex index_;
  std::uint64_t last_recording_ = kNoRow;
  std::uint32_t last_rate_ = 0;
  FaultTally skipped_{"lines", "left out"};
};

}  // namespace

ObjectIndex cut_segments(const SourcePtr& segments, ObjectIndex recordings, OpenContext& context) {
  return Cutter(segments, std::move(recordings), context).cut();
}

}  // namespace npyfs
