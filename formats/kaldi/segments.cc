// SPDX-License-Identifier: Apache-2.0
//
// [kaldi-asr/kaldi:src/featbin/extract-segments.cc]

#include "formats/kaldi/segments.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>

#include "formats/bytes/line_reader.h"

namespace npyfs {

namespace {

constexpr std::size_t kMostLineNbytes = 1 << 16;
constexpr double kMostOvershoot = 0.5;  // seconds
constexpr double kShortest = 0.1;

struct Line {
  std::string_view utterance;
  std::string_view recording;
  double start = 0;
  double end = 0;
  std::optional<std::uint32_t> channel;
};

template <typename T>
bool parse_whole(std::string_view word, T& value) {
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  return error == std::errc() && end == word.data() + word.size();
}

std::optional<Line> parse_line(std::string_view text) {
  std::vector<std::string_view> words;
  for_each_word(text, [&](std::string_view word) { words.push_back(word); });
  Line line;
  if ((words.size() != 4 && words.size() != 5) || !parse_whole(words[2], line.start) ||
      !parse_whole(words[3], line.end) || !std::isfinite(line.start) || !std::isfinite(line.end)) {
    return std::nullopt;
  }
  line.utterance = words[0];
  line.recording = words[1];
  if (words.size() == 5) {
    std::uint32_t channel = 0;
    if (!parse_whole(words[4], channel)) {
      return std::nullopt;
    }
    line.channel = channel;
  }
  return line;
}

struct Frames {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
};

// What of a recording a line means; nothing where Kaldi skips the line.
std::optional<Frames> find_frames(const Line& line, std::uint32_t frames, std::uint32_t rate) {
  const float seconds = static_cast<float>(frames) / static_cast<float>(rate);
  double end = line.end;
  if (line.start < 0 || (end != -1 && (end <= 0 || line.start >= end)) || line.start > seconds ||
      (end != -1 && end > seconds + kMostOvershoot)) {
    return std::nullopt;
  }
  end = end == -1 ? seconds : std::min<double>(end, seconds);
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
    std::vector<Line> lines;
    std::string text = read_all(*segments_);
    StringList wanted;
    std::uint32_t number = 0;
    for (std::size_t at = 0; at < text.size(); ++number) {
      const std::size_t end = std::min(text.find('\n', at), text.size());
      const auto line = parse_line(std::string_view(text).substr(at, end - at));
      if (!line) {
        throw line_error(number + 1,
                         "the line is none of a segment, expected utterance, recording, "
                         "start and end in seconds, and perhaps a channel");
      }
      lines.push_back(*line);
      wanted.append(line->recording);
      at = end + 1;
    }
    const auto rows = match_keys(wanted, recordings_.keys, "wav.scp");
    for (std::size_t i = 0; i < lines.size(); ++i) {
      add(lines[i], rows[i], static_cast<std::uint32_t>(i + 1));
    }
    return finish();
  }

 private:
  static std::string read_all(const ByteSource& source) {
    std::string text(source.nbytes(), '\0');
    source.read_at(0, std::as_writable_bytes(std::span(text)));
    return text;
  }

  Error line_error(std::uint32_t line, const std::string& text) const {
    return file_error(ErrorKind::kCorrupt, fmt::format("{} line {}", segments_->name(), line),
                      text);
  }

  void add(const Line& line, std::uint64_t recording, std::uint32_t number) {
    if (recording == kNoRow) {
      skip(number, fmt::format("wav.scp has no recording '{}'", printable(line.recording)));
      return;
    }
    if (const Damage* damage = recordings_.damage.find(recording)) {
      index_.damage.add(index_.objects.size(), [&] { return *damage; });
      append(line, {});
      return;
    }
    const Object& wave = recordings_.objects[recording];
    if (!is_wave(wave.kind)) {
      throw line_error(number, fmt::format("recording '{}' is a {}, expected a wave",
                                           printable(line.recording), kind_name(wave.kind)));
    }
    if (wave.cols > 1 && !line.channel) {
      throw line_error(number, fmt::format("recording '{}' has {} channels, expected a fifth word "
                                           "that names one",
                                           printable(line.recording), wave.cols));
    }
    const auto frames = find_frames(line, wave.rows, rate_of(wave));
    if (line.channel.value_or(0) >= wave.cols || !frames) {
      skip(number, "the segment lies outside of its recording or is shorter than 0.1 s");
      return;
    }
    append(line, piece_of(wave, *frames, line.channel.value_or(0)));
  }

  void append(const Line& line, const Object& object) {
    index_.objects.push_back(object);
    index_.keys.append(line.utterance);
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

  // Where recordings differ, their headers are asked again.
  std::uint32_t rate_of(const Object& wave) const {
    if (recordings_.rate_hz) {
      return *recordings_.rate_hz;
    }
    const ByteSource& source = *recordings_.sources[wave.source];
    WindowReader window(source);
    return parse_wav(source, window, wave.offset, source.nbytes() - wave.offset).rate_hz;
  }

  void skip(std::uint32_t number, const std::string& why) {
    if (++skipped_ == 1) {
      first_skipped_ = line_error(number, why).what();
    }
  }

  ObjectIndex finish() {
    if (skipped_ > 0) {
      context_.warn(fmt::format(
          "{}; left out{}", first_skipped_,
          skipped_ > 1 ? fmt::format(" (and {} more lines)", skipped_ - 1) : std::string()));
    }
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
  std::uint64_t skipped_ = 0;
  std::string first_skipped_;
};

}  // namespace

ObjectIndex cut_segments(const SourcePtr& segments, ObjectIndex recordings, OpenContext& context) {
  return Cutter(segments, std::move(recordings), context).cut();
}

std::vector<std::uint64_t> match_keys(const StringList& wanted, const StringList& keys,
                                      const std::string& name) {
  std::vector<std::uint64_t> order(keys.size());
  std::iota(order.begin(), order.end(), std::uint64_t{0});
  const auto before = [&](std::uint64_t a, std::uint64_t b) { return keys[a] < keys[b]; };
  if (!std::is_sorted(order.begin(), order.end(), before)) {
    std::sort(order.begin(), order.end(), before);
  }
  const auto twice = std::adjacent_find(order.begin(), order.end(),
                                        [&](auto a, auto b) { return keys[a] == keys[b]; });
  if (twice != order.end()) {
    throw file_error(
        ErrorKind::kCorrupt, name,
        fmt::format("key '{}' stands there twice, expected each once", printable(keys[*twice])));
  }
  std::vector<std::uint64_t> rows(wanted.size(), kNoRow);
  for (std::uint64_t i = 0; i < wanted.size(); ++i) {
    // Both are in one order as a rule.
    if (i < keys.size() && keys[i] == wanted[i]) {
      rows[i] = i;
      continue;
    }
    const auto at = std::partition_point(order.begin(), order.end(),
                                         [&](std::uint64_t row) { return keys[row] < wanted[i]; });
    if (at != order.end() && keys[*at] == wanted[i]) {
      rows[i] = *at;
    }
  }
  return rows;
}

}  // namespace npyfs
