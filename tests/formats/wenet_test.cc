// SPDX-License-Identifier: Apache-2.0
//
// WeNet's lists: what a line may say, where files are looked for, pieces of waves.

#include "formats/wenet/wenet.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/formats/records.h"
#include "tests/support/read_plan.h"
#include "tests/support/tar_writer.h"

namespace npyfs::testing {

namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using std::string_literals::operator""s;

// A list in a folder with two waves and a shard.
class WenetList : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::copy(data_path("tar/wav/s16-mono.wav"), folder_ / "mono.wav");
    std::filesystem::copy(data_path("tar/wav/s24.wav"), folder_ / "s24.wav");
    write_file(folder_ / "a.tar", tar_member({"k.txt", "one"}) + tar_end());
    write_file(folder_ / "b.tar", tar_member({"k.txt", "two"}) + tar_end());
  }
  Opened open(const std::string& list, const OpenContext& context = {}) const {
    write_file(folder_ / "data.list", list);
    return open_records(kWenet, folder_ / "data.list", context);
  }
  std::string refusal_of(const std::string& list) const {
    write_file(folder_ / "data.list", list);
    return refusal(kWenet, folder_ / "data.list");
  }
  TemporaryFolder folder_;
};

TEST_F(WenetList, ShardsAreOneAfterAnotherAndASampleEndsWithItsShard) {
  const auto opened = open("a.tar\r\n\r\nb.tar\n  \na.tar");
  ASSERT_EQ(opened.table->size(), 3U);
  EXPECT_THAT(read_records(*opened.table), ElementsAre("one", "two", "one"));
  EXPECT_EQ(opened.table->sources().back()->name(), folder_ / "data.list");
}

TEST_F(WenetList, WhatIsRemoteOrMissingIsNamedWithItsLine) {
  EXPECT_THAT(refusal_of("a.tar\nhttp://host/b.tar\n"),
              AllOf(HasSubstr("data.list line 2"), HasSubstr("http://host/b.tar")));
  EXPECT_THAT(refusal_of("pipe:touch x\n"), HasSubstr("pipe:"));
  EXPECT_THAT(refusal_of("\na.tar\nc.tar\n"),
              AllOf(HasSubstr("data.list line 3"), HasSubstr("c.tar"), HasSubstr("--base-dir")));
  EXPECT_THAT(refusal_of("/dev/zero\n"), AllOf(HasSubstr("/dev/zero"), HasSubstr("regular")));
  EXPECT_THAT(refusal_of("\n\n"), HasSubstr("no line"));
}

TEST_F(WenetList, PermissiveLeavesOutWhatCannotBeOpened) {
  OpenContext context;
  context.permissive = true;
  const auto opened = open("c.tar\na.tar\n", context);
  EXPECT_THAT(read_records(*opened.table), ElementsAre("one"));
  EXPECT_THAT(opened.warnings, ElementsAre(HasSubstr("c.tar")));
  write_file(folder_ / "bad.tar", "none");
  EXPECT_THAT(read_records(*open("a.tar\nbad.tar\nb.tar\n", context).table),
              ElementsAre("one", "two"));
  EXPECT_THROW(open("bad.tar\n", context), Error);
  const auto raw = open(R"({"key": "a", "wav": "no.wav", "txt": ""}
{"key": "b", "wav": "mono.wav", "txt": "B"})",
                        context);
  EXPECT_EQ(raw.table->size(), 1U);
  EXPECT_EQ(raw.table->text_key(0), "b");
}

TEST_F(WenetList, AShardsLinksAreNotThoseOfTheDroppedShardBefore) {
  OpenContext context;
  context.permissive = true;
  TarEntry cut{"k.wav", ""};
  cut.size_field = octal(1 << 20, 11);
  write_file(folder_ / "bad.tar", tar_member({"target", "BAD"}) +
                                      tar_member({"k.txt", "", '2', "target"}) + tar_header(cut));
  write_file(folder_ / "good.tar", tar_member({"more", std::string(2000, 'm')}) +
                                       tar_member({"target", "GOOD"}) +
                                       tar_member({"k.txt", "", '2', "target"}) + tar_end());
  const auto opened = open("bad.tar\ngood.tar\n", context);
  EXPECT_THAT(read_records(*opened.table), ElementsAre("GOOD"));
  // What was left out of the dropped one is not said of the next.
  EXPECT_THAT(opened.warnings, ElementsAre(HasSubstr("bad.tar"), HasSubstr("good.tar")));
}

TEST_F(WenetList, TextsAreStrippedOfWhatPythonTakesForBlank) {
  std::string wide;
  for (int i = 0; i < 300; ++i) {
    wide += "\u3000\n\u0085";
  }
  for (const std::string& text : {"one\u3000two"s, "\u4e00"s, ""s, "\xe3\x80"s, "\u200b"s}) {
    for (const std::string& blanks : {""s, " \t"s, "\u3000"s, "\u00a0 \u2009"s, wide}) {
      write_file(folder_ / "blank.tar", tar_member({"k.txt", blanks + text + blanks}) + tar_end());
      const auto opened = open("blank.tar\n");
      std::vector<Extent> extents;
      ASSERT_TRUE(opened.table->fields()[0].bytes->locate(0, extents));
      EXPECT_EQ(read_extents(extents), text);
    }
  }
}

TEST_F(WenetList, ALineOfRawModeNeedsKeyAndWave) {
  EXPECT_THAT(refusal_of("{\"key\": \"a\"}\n"), AllOf(HasSubstr("line 1"), HasSubstr("'wav'")));
  EXPECT_THAT(refusal_of("{\"wav\": \"mono.wav\"}\n"), HasSubstr("'key' is missing"));
  EXPECT_THAT(refusal_of("{\"key\": 3, \"wav\": \"mono.wav\"}\n"), HasSubstr("'key' is no text"));
  EXPECT_THAT(refusal_of("{\"key\": \"a\", \"wav\": \"mono.wav\"}\n[]\n"), HasSubstr("line 2"));
  EXPECT_THAT(refusal_of(R"({"key": "a", "wav": "mono.wav", "start": 1})"), HasSubstr("'end'"));
  EXPECT_THAT(refusal_of(R"({"key": "a", "wav": "mono.wav", "start": 2, "end": 1})"),
              HasSubstr("0 <= start"));
  EXPECT_THAT(refusal_of(R"({"key": "a", "wav": "mono.wav", "start": NaN, "end": 1})"),
              HasSubstr("0 <= start"));
}

TEST_F(WenetList, PiecesAreCutAtWholeFramesAndAtTheEnd) {
  const auto uncut = open(R"({"key": "a", "wav": "mono.wav", "txt": "t"})").table;
  EXPECT_EQ(uncut->fields()[0].typed, nullptr);  // understood like any payload
  EXPECT_EQ(uncut->fields()[0].extension, "wav");
  const auto whole = open(R"({"key": "a", "wav": "mono.wav", "start": 0, "end": 9})").table;
  Item item;
  whole->fields()[0].typed->inspect(0, item);
  const std::uint64_t frames = item.shape[0];
  ASSERT_GT(frames, 100U);
  const auto rate = *whole->fields()[0].typed->rate_hz();
  const auto at = [&](double frame) { return std::to_string(frame / rate); };
  const auto cut =
      open(R"({"key": "a", "wav": "mono.wav", "start": )" + at(10.6) + R"(, "end": )" + at(20.4) +
           "}\n{\"key\": \"b\", \"wav\": \"mono.wav\", \"start\": 0, \"end\": 99}\n"
           "{\"key\": \"c\", \"wav\": \"mono.wav\", \"start\": 98, \"end\": 99}\n")
          .table;
  const Column& x = *cut->fields()[0].typed;
  const std::vector<std::uint64_t> lengths = {10, frames, 0};
  for (std::uint64_t i = 0; i < 3; ++i) {
    x.inspect(i, item);
    EXPECT_EQ(item.shape, (Shape{lengths[i], 1})) << i;
  }
  Plan plan;
  x.plan(0, {0, 20}, plan);
  ASSERT_EQ(plan.pieces().size(), 1U);
  EXPECT_EQ(plan.pieces()[0].offset, 44U + 20U);
}

// A name of payloads/audio, the samples that libsndfile reads of it beside it.
struct Sound {
  const char* name;
  std::uint32_t rate_hz;
  std::uint32_t frame_nbytes;
};
constexpr Sound kSounds[] = {
    {"s8.flac", 8000, 2},      {"s16.flac", 16000, 2},          {"s24_stereo.flac", 44100, 8},
    {"ulaw.wav", 8000, 2},     {"vorbis_stereo.ogg", 16000, 4}, {"opus.ogg", 16000, 2},
    {"ffmpeg.opus", 16000, 2}, {"sox.mp3", 16000, 2},           {"ffmpeg.mp3", 16000, 2},
    {"stream.flac", 16000, 2}, {"rifx24.wav", 16000, 8}};

std::string quoted_line(const std::string& key, const std::string& wav,
                        const std::string& cut = "") {
  return "{\"key\": \"" + key + "\", \"wav\": \"" + wav + "\"" + cut + "}\n";
}

std::string cut_text(double start, double end) {
  return fmt::format(R"(, "start": {}, "end": {})", start, end);
}

// The items of a column as chunks, to be decoded like any.
class ItemChunks : public ChunkSource {
 public:
  explicit ItemChunks(const Column& column) : column_(column) {}
  std::uint64_t chunk_nbytes(std::uint64_t chunk) const override {
    Item item;
    column_.inspect(chunk, item);
    return item.dtype.itemsize * *element_count(item.shape);
  }
  void decode(std::uint64_t chunk, std::span<std::byte> out,
              DecodeContext& context) const override {
    column_.decode(chunk, out, context);
  }

 private:
  const Column& column_;
};

std::string read_item(const Column& column, std::uint64_t record) {
  const ItemChunks items(column);
  if (column.decoded(record)) {
    return text_of(decode_chunk(items, record).bytes);
  }
  Plan plan;
  column.plan(record, {0, items.chunk_nbytes(record)}, plan);
  return read_plan(plan);
}

const Damage* damage_of(const RecordTable& table, std::uint64_t record) {
  Item item;
  table.fields()[0].typed->inspect(record, item);
  return item.damage;
}

TEST_F(WenetList, APieceOfCompressedAudioIsASliceOfTheWhole) {
  for (const Sound& sound : kSounds) {
    const std::string path = data_path("payloads/audio/") + sound.name;
    const std::string whole = npy_data(path + ".npy");
    const std::uint64_t frames = whole.size() / sound.frame_nbytes;
    std::string list = quoted_line("whole", path);
    std::vector<std::pair<std::uint64_t, std::uint64_t>> pieces = {{0, frames}};
    for (const auto& [first, last] : std::vector<std::pair<double, double>>{
             {0, 1}, {0.9, 100.9}, {577, 1731.5}, {1153, 1154}, {3000.25, 1e9}, {700, 700}}) {
      const double start = first / sound.rate_hz;
      const double end = last / sound.rate_hz;
      list += quoted_line("k" + std::to_string(pieces.size()), path, cut_text(start, end));
      const auto at = [&](double seconds) {
        return std::min(frames, static_cast<std::uint64_t>(seconds * sound.rate_hz));
      };
      pieces.emplace_back(at(start), at(end));
    }
    const auto opened = open(list);
    EXPECT_THAT(opened.warnings, ElementsAre()) << sound.name;
    const Column& x = *opened.table->fields()[0].typed;
    EXPECT_EQ(x.rate_hz(), sound.rate_hz) << sound.name;
    for (std::uint64_t i = 0; i < pieces.size(); ++i) {
      ASSERT_EQ(damage_of(*opened.table, i), nullptr) << sound.name;
      const auto [first, last] = pieces[i];
      EXPECT_EQ(read_item(x, i),
                whole.substr(first * sound.frame_nbytes, (last - first) * sound.frame_nbytes))
          << sound.name << " " << first << " " << last;
    }
    // Samples that must be decoded have no stored form but the file.
    if (std::string(sound.name) != "rifx24.wav") {
      EXPECT_EQ(read_record(*opened.table, 2), read_file(path)) << sound.name;
    }
  }
}

TEST_F(WenetList, KindsOfAudioMayBeMixed) {
  const std::string audio = data_path("payloads/audio/");
  const std::string flac = quoted_line("a", audio + "s16.flac");
  const std::string mp3 = quoted_line("b", audio + "sox.mp3");
  // Their first bytes need not tell that they are audio.
  const auto uncut = open(mp3 + flac);
  EXPECT_EQ(uncut.table->fields()[0].typed, nullptr);
  EXPECT_EQ(uncut.table->fields()[0].extension, "wav");
  const auto cut = open(mp3 + flac + quoted_line("c", "mono.wav", cut_text(0, 0.001)) +
                        quoted_line("d", audio + "opus.ogg", cut_text(0.01, 0.02)));
  const Column& x = *cut.table->fields()[0].typed;
  EXPECT_EQ(read_item(x, 0), npy_data(audio + "sox.mp3.npy"));
  EXPECT_EQ(read_item(x, 1), npy_data(audio + "s16.flac.npy"));
  EXPECT_FALSE(x.decoded(2));
  EXPECT_EQ(read_item(x, 3), npy_data(audio + "opus.ogg.npy").substr(160 * 2, 160 * 2));
  // What is not audio is bytes, unless there is a cut.
  write_file(folder_ / "a.m4a", "0000ftypM4A ");
  EXPECT_EQ(open(quoted_line("a", "a.m4a") + flac).table->fields()[0].extension, "");
}

TEST_F(WenetList, WhatIsNoAudioIsOneRecordsDamage) {
  write_file(folder_ / "a.flac", "fLaC....");
  write_file(folder_ / "b.m4a", "0000ftypM4A ");
  const auto opened = open(quoted_line("a", "mono.wav", cut_text(0, 1)) +
                           quoted_line("b", "a.flac", cut_text(0, 1)) + quoted_line("c", "b.m4a"));
  EXPECT_EQ(damage_of(*opened.table, 0), nullptr);
  ASSERT_NE(damage_of(*opened.table, 1), nullptr);
  EXPECT_THAT(damage_of(*opened.table, 1)->error.what(),
              AllOf(HasSubstr("a.flac at byte 0"), HasSubstr("record 1 (key b)")));
  ASSERT_NE(damage_of(*opened.table, 2), nullptr);
  EXPECT_THAT(damage_of(*opened.table, 2)->error.what(), HasSubstr("is no audio"));
  // A list of nothing else is refused.
  EXPECT_THAT(refusal_of(quoted_line("b", "a.flac", cut_text(0, 1)) + quoted_line("c", "b.m4a")),
              AllOf(HasSubstr("data.list line 1"), HasSubstr("a.flac")));
}

TEST_F(WenetList, AnUncutWaveThatIsCutShortIsDamaged) {
  const std::filesystem::path shorter = folder_ / "short.wav";
  std::filesystem::copy(folder_ / "mono.wav", shorter);
  std::filesystem::resize_file(shorter, std::filesystem::file_size(shorter) - 100);
  const auto opened =
      open(quoted_line("a", "short.wav") + quoted_line("b", "short.wav", cut_text(0, 1)) +
           quoted_line("c", "mono.wav", cut_text(77, 78)) +
           quoted_line("d", "short.wav", cut_text(0.001, 1)) +
           quoted_line("e", "mono.wav", cut_text(98, 99)));
  ASSERT_NE(damage_of(*opened.table, 0), nullptr);
  EXPECT_THAT(damage_of(*opened.table, 0)->error.what(),
              AllOf(HasSubstr("record 0 (key a)"), HasSubstr("short.wav"), HasSubstr("cut short")));
  EXPECT_EQ(damage_of(*opened.table, 1), nullptr);
  // Each kind of finding is told, with its first line and its count.
  EXPECT_THAT(opened.warnings,
              ElementsAre(AllOf(HasSubstr("line 2: "), HasSubstr("short.wav"),
                                HasSubstr("what is there is shown (and 1 more lines)")),
                          AllOf(HasSubstr("line 3: "), HasSubstr("'start' is behind the end"),
                                HasSubstr("(and 1 more lines)"))));
}

TEST_F(WenetList, AFirstLineMayBeLong) {
  const std::string text(6000, 't');
  const auto opened =
      open("\n {\"key\": \"a\", \"wav\": \"mono.wav\", \"txt\": \"" + text + "\"}\n");
  EXPECT_EQ(opened.table->fields()[0].extension, "wav");
  const std::string refused = refusal_of(std::string(900'000, 'p') + "\n");
  EXPECT_THAT(refused, AllOf(HasSubstr("line 1"), HasSubstr("900000 bytes")));
  EXPECT_LT(refused.size(), 600U);
  EXPECT_THAT(refusal_of("{\"key\": " + std::string(50'000, '[') + "\n"),
              AllOf(HasSubstr("line 1"), HasSubstr("no JSON")));
}

TEST_F(WenetList, WhereAPathWasLookedForIsSaidOnceAndOfRelativeOnesOnly) {
  const auto count = [](const std::string& text) {
    std::size_t n = 0;
    for (std::size_t at = 0; (at = text.find("working directory", at)) != std::string::npos; ++at) {
      ++n;
    }
    return n;
  };
  EXPECT_EQ(count(refusal_of("{\"key\": \"a\", \"wav\": \"gone.wav\", \"txt\": \"\"}\n")), 1U);
  EXPECT_EQ(count(refusal_of("{\"key\": \"a\", \"wav\": \"/gone.wav\", \"txt\": \"\"}\n")), 0U);
  EXPECT_THAT(refusal_of("{\"key\": \"a\", \"wav\": \"/gone.wav\", \"txt\": \"\"}\n"),
              HasSubstr("/gone.wav: cannot open"));
}

TEST_F(WenetList, ADamagedWaveIsOneRecordsDamage) {
  write_file(folder_ / "bad.wav", "RIFF\4\0\0\0WAVEjunk"s);
  const auto opened = open(
      "{\"key\": \"a\", \"wav\": \"mono.wav\"}\n"
      "{\"key\": \"b\", \"wav\": \"bad.wav\"}\n"
      "{\"key\": \"c\", \"wav\": \"mono.wav\", \"start\": 0, \"end\": 1}\n");
  EXPECT_EQ(damage_of(*opened.table, 0), nullptr);
  ASSERT_NE(damage_of(*opened.table, 1), nullptr);
  EXPECT_THAT(damage_of(*opened.table, 1)->error.what(), HasSubstr("bad.wav"));
  EXPECT_EQ(damage_of(*opened.table, 2), nullptr);
}

TEST(WenetRecognised, ByItsFirstLine) {
  const auto looks = [](const std::string& text) {
    return kWenet.recognises({"f", false, std::make_shared<MemorySource>("f", bytes_of(text))});
  };
  EXPECT_TRUE(looks("\r\nshards/a.tar\n"));
  EXPECT_TRUE(looks("http://host/a.tar.gz\n"));
  EXPECT_TRUE(looks("{\"key\": \"a\", \"wav\": \"b\"}\n"));
  EXPECT_TRUE(
      looks("\n{\"key\": \"a\", \"txt\": \"" + std::string(9000, 't') + "\", \"wav\": \"b\"}\n"));
  EXPECT_FALSE(looks(std::string(5000, 'a') + ".tar\n"));
  EXPECT_FALSE(looks("utt a.tar\n"));
  EXPECT_FALSE(looks("{\"key\": \"a\"}\n"));
  EXPECT_FALSE(looks(""));
  EXPECT_FALSE(looks(std::string(10000, 'a')));
}

}  // namespace

}  // namespace npyfs::testing
