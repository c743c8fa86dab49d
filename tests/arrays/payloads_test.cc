// SPDX-License-Identifier: Apache-2.0
//
// Payloads that the usual tools wrote become the arrays that these tools read. See
// tests/data/payloads/ABOUT.md.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>

#include "formats/arrays/layout.h"
#include "formats/arrays/pickled_table.h"
#include "formats/bytes/npy_header.h"
#include "formats/bytes/zero_source.h"
#include "formats/payloads/payload.h"
#include "tests/support/fake_table.h"
#include "tests/support/read_plan.h"

namespace npyfs {
namespace {

namespace fs = std::filesystem;
using testing::bytes_field;
using testing::FakeField;
using testing::FakeRecords;
using testing::make_table;
using testing::read_array;
using testing::read_what_can_be;
using Strings = std::vector<std::string>;

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

fs::path data_folder(const std::string& name) {
  return fs::path(NPYFS_TEST_DATA) / "payloads" / name;
}

std::uint32_t test_seed() {
  const char* given = std::getenv("NPYFS_TEST_SEED");
  return given != nullptr ? static_cast<std::uint32_t>(std::strtoul(given, nullptr, 10))
                          : std::random_device()();
}

// What a .npy file holds.
struct Npy {
  std::string dtype;
  Shape shape;
  std::string data;
};

Npy read_npy(const fs::path& path) {
  const std::string bytes = read_file(path);
  const NpyHeader header = parse_npy_header(std::as_bytes(std::span(bytes)), path, 0);
  return {header.dtype.text(), header.shape, bytes.substr(header.nbytes)};
}

// The arrays of a table, with what was said.
struct Laid {
  std::map<std::string, ArrayPtr> arrays;
  Strings warnings;
  std::optional<std::uint32_t> rate_hz;
};

Laid lay(TablePtr table, const FieldChoices& choices = {}) {
  Laid laid;
  const auto warn = [&](const std::string& text) { laid.warnings.push_back(text); };
  table = unpack_pickles(std::move(table), choices, "", warn);
  for (const Field& field : table->fields()) {
    LaidOutField made = lay_out(field.name, field, table, choices, warn);
    for (LaidOutArray& array : made.arrays) {
      laid.arrays[array.name] = std::move(array.array);
    }
    laid.rate_hz = made.rate_hz;
  }
  return laid;
}

TablePtr one_payload(const std::string& bytes, const std::string& extension) {
  FakeField field = bytes_field("x", {bytes});
  field.extension = extension;
  return make_table(field);
}

// 3 where libraries may round differently.
int tolerance_of(const fs::path& path) { return path.extension() == ".jpg" ? 3 : 0; }

void expect_data(const std::string& found, const std::string& expected, int tolerance,
                 const std::string& what) {
  ASSERT_EQ(found.size(), expected.size()) << what;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const int difference =
        static_cast<unsigned char>(found[i]) - static_cast<unsigned char>(expected[i]);
    ASSERT_LE(std::abs(difference), tolerance) << what << " byte " << i;
  }
}

void expect_array(const Laid& laid, const std::string& name, const Npy& expected,
                  const Shape& shape, int tolerance, const std::string& what) {
  ASSERT_TRUE(laid.arrays.count(name)) << what << (laid.warnings.empty() ? "" : laid.warnings[0]);
  const Array& array = *laid.arrays.at(name);
  EXPECT_EQ(array.dtype().text(), expected.dtype) << what;
  ASSERT_EQ(array.shape(), shape) << what << (laid.warnings.empty() ? "" : laid.warnings[0]);
  expect_data(read_array(array), expected.data, tolerance, what);
}

Shape stacked(const Shape& item) {
  Shape shape{1};
  shape.insert(shape.end(), item.begin(), item.end());
  return shape;
}

// Payloads of the folder that have an expected array beside them.
std::vector<fs::path> payloads_in(const std::string& folder) {
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(data_folder(folder))) {
    if (fs::exists(entry.path().string() + ".npy")) {
      found.push_back(entry.path());
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::string extension_of(const fs::path& path) { return path.extension().string().substr(1); }

TEST(Images, AreThePixelsThatPilReads) {
  const auto images = payloads_in("images");
  ASSERT_GE(images.size(), 19U);
  for (const fs::path& path : images) {
    const Npy expected = read_npy(path.string() + ".npy");
    for (const std::string& extension : {extension_of(path), std::string()}) {
      const Laid laid = lay(one_payload(read_file(path), extension));
      expect_array(laid, "x", expected, stacked(expected.shape), tolerance_of(path), path);
      EXPECT_TRUE(laid.warnings.empty()) << laid.warnings[0];
    }
  }
}

TEST(Audio, IsTheSamplesThatLibsndfileReads) {
  for (const std::string folder : {"audio", "wav"}) {
    const auto sounds = payloads_in(folder);
    ASSERT_GE(sounds.size(), 14U);
    for (const fs::path& path : sounds) {
      const Npy expected = read_npy(path.string() + ".npy");
      const Laid laid = lay(one_payload(read_file(path), extension_of(path)));
      expect_array(laid, "x", expected, expected.shape, 0, path);
      ASSERT_TRUE(laid.arrays.count("x_offsets"));  // also where lengths agree
      EXPECT_TRUE(laid.warnings.empty()) << laid.warnings[0];
    }
  }
}

TEST(Audio, RatesAreThoseOfTheFiles) {
  std::ifstream rates(data_folder("audio") / "rates.txt");
  std::string name;
  std::uint32_t rate = 0;
  int files = 0;
  while (rates >> name >> rate) {
    const Laid laid = lay(one_payload(read_file(data_folder("audio") / name), "wav"));
    EXPECT_EQ(laid.rate_hz, rate) << name;
    ++files;
  }
  EXPECT_EQ(files, 14);
}

TEST(Audio, FilesOfSeveralKindsAreOneArray) {
  FakeField field = bytes_field("x", {read_file(data_folder("audio") / "s16.flac"),
                                      read_file(data_folder("wav") / "s16-mono.wav"), "",
                                      read_file(data_folder("audio") / "ffmpeg.mp3")});
  field.extension = "wav";
  const Laid laid = lay(make_table(field));
  const std::string data = read_array(*laid.arrays.at("x"));
  std::string expected;
  for (const std::string name : {"audio/s16.flac", "wav/s16-mono.wav", "audio/ffmpeg.mp3"}) {
    expected += read_npy(data_folder(name + ".npy")).data;
  }
  EXPECT_TRUE(data == expected);
  EXPECT_EQ(laid.rate_hz, 16000U);
  ASSERT_EQ(laid.warnings.size(), 1U);  // of the empty one
  EXPECT_NE(laid.warnings[0].find("record 2"), std::string::npos) << laid.warnings[0];
}

TEST(Audio, OfSeveralRatesIsSaidToBe) {
  std::string slow = read_file(data_folder("audio") / "rifx.wav");
  const std::string fast = slow;
  slow[26] = static_cast<char>(slow[26] ^ 1);  // of the rate, big-endian
  FakeField field = bytes_field("x", {fast, fast, slow, slow});
  field.extension = "wav";
  const Laid laid = lay(make_table(field));
  EXPECT_FALSE(laid.rate_hz);
  ASSERT_EQ(laid.warnings.size(), 1U);
  EXPECT_NE(laid.warnings[0].find("record 2 has"), std::string::npos) << laid.warnings[0];
}

TEST(Audio, PlainSamplesAreMapped) {
  for (const std::string name : {"s16-mono.wav", "u8-odd.wav", "f64.wav", "list-before.wav"}) {
    const Laid laid = lay(one_payload(read_file(data_folder("wav") / name), "wav"));
    EXPECT_EQ(laid.arrays.at("x")->storage(), "mapped") << name;
  }
  const Laid laid = lay(one_payload(read_file(data_folder("wav") / "s24.wav"), "wav"));
  EXPECT_EQ(laid.arrays.at("x")->storage(), "decoded");
}

TEST(Audio, ACutWaveIsDamagedByName) {
  const Laid laid = lay(one_payload(read_file(data_folder("wav") / "trunc.wav"), "wav"));
  ASSERT_FALSE(laid.warnings.empty());
  EXPECT_NE(laid.warnings[0].find("cut short"), std::string::npos) << laid.warnings[0];
  EXPECT_NE(laid.warnings[0].find("record 0"), std::string::npos) << laid.warnings[0];
}

// Every kind of payload, cut anywhere: what was lossless is never other data.
TEST(Damage, ACutPayloadIsRefusedOrRight) {
  for (const std::string folder : {"images", "audio", "wav"}) {
    for (const fs::path& path : payloads_in(folder)) {
      const std::string whole = read_file(path);
      const std::string expected = read_npy(path.string() + ".npy").data;
      // A lossy stream without a length ends where it ends, and these two have no checksum.
      const std::string name = path.filename();
      const bool may_be_short = name.ends_with(".mp3") || name.ends_with(".ogg") ||
                                name.ends_with(".opus") || name == "stream.flac" ||
                                name.starts_with("stream-") || name == "ima_adpcm.wav";
      for (std::size_t n = 1; n < whole.size(); n += n < 100 || n + 40 > whole.size() ? 1 : 61) {
        try {
          const Laid laid = lay(one_payload(whole.substr(0, n), extension_of(path)));
          const std::string data = read_array(*laid.arrays.at("x"));
          if (!may_be_short && !data.empty()) {
            expect_data(data, expected, tolerance_of(path), name + " cut to " + std::to_string(n));
          }
        } catch (const Error& error) {
          EXPECT_EQ(error.to_errno(), EIO) << error.what();
        }
      }
    }
  }
}

TEST(Damage, FlippedBytesNeverCrash) {
  const std::uint32_t seed = test_seed();
  SCOPED_TRACE("NPYFS_TEST_SEED=" + std::to_string(seed));
  std::mt19937 random(seed);
  for (const std::string folder : {"images", "audio", "wav"}) {
    for (const fs::path& path : payloads_in(folder)) {
      const std::string whole = read_file(path);
      const std::string expected = read_npy(path.string() + ".npy").data;
      for (int i = 0; i < 150; ++i) {
        std::string damaged = whole;
        const std::size_t at =
            random() % (i % 2 == 0 ? std::min<std::size_t>(64, whole.size()) : whole.size());
        damaged[at] = static_cast<char>(damaged[at] ^ (1 << random() % 8));
        try {
          const Laid laid = lay(one_payload(damaged, extension_of(path)));
          const Array& array = *laid.arrays.at("x");
          // Header damage may make it large, which its bytes then do not bear out.
          const std::string data =
              read_array(array, {0, std::min<std::uint64_t>(array.nbytes(), 1 << 20)});
          // All of a png that matters has checksums, of a flac all but its first block.
          if (path.extension() == ".png" || (path.extension() == ".flac" && at > 64)) {
            // A header that cannot be believed leaves nothing to read; a stream without a length
            // ends where its frames do.
            const bool may_be_short = path.filename() == "stream.flac";
            EXPECT_TRUE(data.empty() || (may_be_short && data.size() != expected.size()) ||
                        data == expected)
                << path << " byte " << at;
          }
        } catch (const Error& error) {
          EXPECT_TRUE(error.to_errno() == EIO) << error.what();
        }
      }
    }
  }
}

TEST(Images, OfOneSizeAndChannelsAreStackedElseBytes) {
  const std::string rgb = read_file(data_folder("images") / "rgb.png");
  const std::string jpg = read_file(data_folder("images") / "rgb.jpg");
  const std::string webp = read_file(data_folder("images") / "lossless.webp");
  const Laid same = lay(make_table(bytes_field("x", {rgb, jpg, webp})));
  EXPECT_EQ(same.arrays.at("x")->shape(), (Shape{3, 23, 31, 3}));
  const std::string grey = read_file(data_folder("images") / "grey.png");
  const Laid mixed = lay(make_table(bytes_field("x", {rgb, grey})));
  EXPECT_TRUE(read_array(*mixed.arrays.at("x")) == rgb + grey);
  ASSERT_EQ(mixed.warnings.size(), 1U);
  EXPECT_NE(mixed.warnings[0].find("record 1 is |u1 (19, 17, 1)"), std::string::npos)
      << mixed.warnings[0];
}

TEST(Images, AreMadeOneSizeWhereAskedFor) {
  const Strings files = {read_file(data_folder("images") / "rgb.png"),
                         read_file(data_folder("images") / "rgba.png"),
                         read_file(data_folder("images") / "grey.png")};
  FieldChoices choices;
  choices.image = ImageSize{8, 10, std::nullopt};
  const Laid mixed = lay(make_table(bytes_field("x", files)), choices);
  EXPECT_EQ(mixed.arrays.at("x")->shape().size(), 1U);  // of several channels
  choices.image->channels = 3;
  const Laid same = lay(make_table(bytes_field("x", files)), choices);
  EXPECT_EQ(same.arrays.at("x")->shape(), (Shape{3, 8, 10, 3}));
  const std::string pixels = read_array(*same.arrays.at("x"));
  // Grey is as red as it is blue.
  for (std::size_t i = pixels.size() - 8 * 10 * 3; i < pixels.size(); i += 3) {
    ASSERT_EQ(pixels[i], pixels[i + 2]);
  }
}

TEST(Images, OfTheSizeAskedForAreUntouched) {
  FieldChoices choices;
  choices.image = ImageSize{23, 31, std::nullopt};
  const fs::path path = data_folder("images") / "rgb.png";
  const Laid laid = lay(one_payload(read_file(path), "png"), choices);
  const Npy expected = read_npy(path.string() + ".npy");
  expect_array(laid, "x", expected, stacked(expected.shape), 0, path);
}

TEST(Images, AreCroppedInTheCentre) {
  // The shorter edge stays as it is: nothing is between two pixels.
  FieldChoices choices;
  choices.image = ImageSize{23, 11, std::nullopt};
  const fs::path path = data_folder("images") / "rgb.png";
  const Laid laid = lay(one_payload(read_file(path), "png"), choices);
  const Npy whole = read_npy(path.string() + ".npy");
  std::string expected;
  for (std::size_t row = 0; row < 23; ++row) {
    expected += whole.data.substr((row * 31 + 10) * 3, std::size_t{11} * 3);
  }
  EXPECT_TRUE(read_array(*laid.arrays.at("x")) == expected);
}

TEST(Images, OneThatCannotBeReadIsDamagedAlone) {
  const std::string rgb = read_file(data_folder("images") / "rgb.png");
  FakeField field = bytes_field("x", {rgb, rgb.substr(0, 20), "what?", rgb});
  field.extension = "png";
  const Laid laid = lay(make_table(field));
  const Array& x = *laid.arrays.at("x");
  ASSERT_EQ(x.shape(), (Shape{4, 23, 31, 3}));
  const std::string expected = read_npy(data_folder("images") / "rgb.png.npy").data;
  const std::uint64_t n = expected.size();
  EXPECT_TRUE(read_array(x, {0, n}) == expected);
  EXPECT_TRUE(read_array(x, {3 * n, 4 * n}) == expected);
  EXPECT_THROW(read_array(x, {n, n + 1}), Error);
  EXPECT_THROW(read_array(x, {2 * n, 2 * n + 1}), Error);
  // Two kinds of damage: none hides the other.
  ASSERT_EQ(laid.warnings.size(), 2U);
  EXPECT_NE(laid.warnings[0].find("record 1"), std::string::npos) << laid.warnings[0];
  EXPECT_NE(laid.warnings[1].find("record 2"), std::string::npos) << laid.warnings[1];
}

// A flipped bit of one header must not make all others bytes.
TEST(Images, AHeaderThatFailsItsChecksumSpeaksForNobody) {
  const std::string rgb = read_file(data_folder("images") / "rgb.png");
  std::string other = rgb;
  other[19] = static_cast<char>(other[19] ^ 4);  // the width
  FakeRecords records;
  records.fields = {bytes_field("x", {rgb, other, rgb})};
  records.checksums = true;
  records.failing = {1};
  const Laid laid = lay(make_table(std::move(records)));
  ASSERT_EQ(laid.arrays.at("x")->shape(), (Shape{3, 23, 31, 3}));
  EXPECT_THROW(read_array(*laid.arrays.at("x")), Error);
}

TEST(Integers, AreReadAsPythonReadsThem) {
  FakeField field = bytes_field("y", {"7", " -12\n", "+5", "1_000", "-9223372036854775808"});
  field.extension = "cls";
  const Laid laid = lay(make_table(field));
  EXPECT_EQ(laid.arrays.at("y")->dtype().text(), "<i8");
  EXPECT_EQ(read_array(*laid.arrays.at("y")),
            testing::packed<std::int64_t>({7, -12, 5, 1000, INT64_MIN}));
  EXPECT_EQ(laid.arrays.at("y")->storage(), "mapped");
}

TEST(Integers, OfAnotherKindLeaveBytes) {
  for (const std::string bad :
       {"3.5", "0x10", "9223372036854775808", "_1", "1__0", "--1", "+-1", "1 2", " ", "cat"}) {
    FakeField field = bytes_field("y", {"7", bad});
    field.extension = "cls";
    const Laid laid = lay(make_table(field));
    EXPECT_EQ(laid.arrays.at("y")->dtype().text(), "|u1") << bad;
    ASSERT_EQ(laid.warnings.size(), 1U);
    EXPECT_NE(laid.warnings[0].find("expected an integer"), std::string::npos);
  }
}

TEST(Integers, OneThatIsMissingLeavesAGap) {
  FakeField field = bytes_field("y", {"7", "", "9"});
  field.extension = "cls";
  const Laid laid = lay(make_table(field));
  EXPECT_EQ(read_array(*laid.arrays.at("y")), testing::packed<std::int64_t>({7, 9}));
  EXPECT_EQ(read_array(*laid.arrays.at("y_offsets")), testing::packed<std::int64_t>({0, 1, 1, 2}));
}

TEST(Text, IsAsWideAsTheLongest) {
  FakeField field = bytes_field("t", {"ab", "\xe4\xb8\x96\xe7\x95\x8c!", "", "\xff"});
  field.extension = "TXT";
  field.items[2].present = false;
  const Laid laid = lay(make_table(field));
  EXPECT_EQ(laid.arrays.at("t")->dtype().text(), "<U3");
  EXPECT_EQ(
      read_array(*laid.arrays.at("t")),
      testing::packed<std::uint32_t>({'a', 'b', 0, 0x4e16, 0x754c, '!', 0, 0, 0, 0xdcff, 0, 0}));
}

TEST(Text, OfNothingIsOneCharacterWide) {
  FakeField field = bytes_field("t", {"", ""});
  field.extension = "txt";
  field.items[1].present = false;
  const Laid laid = lay(make_table(field));
  EXPECT_EQ(laid.arrays.at("t")->dtype().text(), "<U1");
  EXPECT_EQ(laid.arrays.at("t")->shape(), Shape{2});
  EXPECT_EQ(read_array(*laid.arrays.at("t")), std::string(8, '\0'));
  EXPECT_EQ(lay(make_table(bytes_field("t", {"", ""}))).arrays.at("t")->dtype().text(), "|u1");
}

// ---- .npy

std::string npy(const char* dtype, const Shape& shape, const std::string& data) {
  return print_npy_header(DType::simple(dtype), shape, false) + data;
}

// Three records, of which `bad`, wherever it stands, is damaged alone.
void expect_damaged_alone(const std::string& bad) {
  const std::string good = npy("<i2", {2}, "abcd");
  for (std::size_t at = 0; at < 3; ++at) {
    Strings records(3, good);
    records[at] = bad;
    FakeField field = bytes_field("x", records);
    field.extension = "npy";
    const Laid laid = lay(make_table(field));
    const Array& x = *laid.arrays.at("x");
    EXPECT_EQ(x.dtype().text(), "<i2") << bad.substr(60, 20);
    ASSERT_EQ(x.shape(), (Shape{3, 2}));
    for (std::size_t i = 0; i < 3; ++i) {
      if (i == at) {
        EXPECT_THROW(read_array(x, {4 * i, 4 * i + 4}), Error);
      } else {
        EXPECT_EQ(read_array(x, {4 * i, 4 * i + 4}), "abcd");
      }
    }
    ASSERT_EQ(laid.warnings.size(), 1U);
    EXPECT_NE(laid.warnings[0].find("damaged"), std::string::npos) << laid.warnings[0];
  }
}

TEST(Npy, AHeaderThatItsRecordBeliesSpeaksForNobody) {
  expect_damaged_alone(npy("<i8", {2}, "abcd"));
  expect_damaged_alone(npy("<i2", {2, 7}, "abcd"));
  expect_damaged_alone(npy("<i2", {3}, "abcd"));
}

TEST(Npy, OneWithoutItsMagicIsDamagedAlone) {
  std::string bad = npy("<i2", {2}, "abcd");
  bad[2] = 'M';
  expect_damaged_alone(bad);
}

TEST(Npy, OneOfAnotherKindLeavesBytes) {
  const std::string png = read_file(data_folder("images") / "rgb.png");
  const std::string good = npy("<i2", {2}, "abcd");
  for (const Strings& records : {Strings{good, png}, Strings{png, png}, Strings{"what?", "no"}}) {
    FakeField field = bytes_field("x", records);
    field.extension = "npy";
    const Laid laid = lay(make_table(field));
    EXPECT_TRUE(read_array(*laid.arrays.at("x")) == records[0] + records[1]);
    EXPECT_EQ(laid.warnings.size(), 1U);
  }
}

TEST(Npy, AnEmptyOneIsMissing) {
  const std::string good = npy("<i2", {2}, "abcd");
  FakeField field = bytes_field("x", {good, "", good});
  field.extension = "npy";
  const Laid laid = lay(make_table(field));
  EXPECT_EQ(read_array(*laid.arrays.at("x")), "abcdabcd");
  EXPECT_EQ(read_array(*laid.arrays.at("x_offsets")), testing::packed<std::int64_t>({0, 2, 2, 4}));
}

TEST(Text, IsCountedAcrossTheEndsOfParts) {
  for (const std::size_t shift : {0, 1, 2, 3}) {
    std::string text(shift, 'a');
    for (int i = 0; i < 500000; ++i) {
      text += "\xe4\xb8\x96";
    }
    FakeField field = bytes_field("t", {text});
    field.extension = "txt";
    const Laid laid = lay(make_table(field));
    EXPECT_EQ(laid.arrays.at("t")->dtype().text(), "<U" + std::to_string(500000 + shift));
  }
}

// One record: a head, and zeroes behind it, as a member of a compressed shard may have for nothing.
struct Swollen : ByteColumn {
  Swollen(const std::string& head, std::uint64_t zeroes_nbytes)
      : source("head", head), zeroes(zeroes_nbytes) {}
  std::uint64_t size() const override { return 1; }
  bool locate(std::uint64_t /*record*/, std::vector<Extent>& out) const override {
    out = {{&source, 0, source.nbytes()}, {&zero_source(), 0, zeroes}};
    return true;
  }
  testing::FakeSource source;
  std::uint64_t zeroes;
};

TEST(Damage, APayloadThatNoMemoryHoldsIsRefused) {
  const TablePtr table = make_table(bytes_field("x", {"any"}));
  constexpr std::uint64_t kHuge = std::uint64_t{1} << 50;
  const auto text = std::make_shared<Swollen>("a", kHuge);
  EXPECT_THROW(make_text_column({text, *table, strict_verifier()}), Error);
  const auto is_damaged = [](const Column& column) {
    Item item;
    column.inspect(0, item);
    return item.damage != nullptr;
  };
  const std::string png = read_file(data_folder("images") / "rgb.png");
  const std::string flac = read_file(data_folder("audio") / "s16.flac");
  const std::string wav = read_file(data_folder("audio") / "rifx.wav");
  for (const std::uint64_t zeroes : {std::uint64_t{0}, kHuge}) {
    const auto swollen = [&](const std::string& head) {
      return std::make_shared<Swollen>(head, zeroes);
    };
    EXPECT_EQ(is_damaged(*make_image_column({swollen(png), *table, strict_verifier(), true})),
              zeroes > 0);
    EXPECT_EQ(is_damaged(*make_audio_column({swollen(flac), *table, strict_verifier(), true})),
              zeroes > 0);
    EXPECT_EQ(is_damaged(*make_audio_column({swollen(wav), *table, strict_verifier(), true})),
              zeroes > 0);
  }
}

// ---- pickles

TEST(Pickles, BecomeTheArraysThatNumpyReads) {
  int cases = 0;
  for (const auto& entry : fs::directory_iterator(data_folder("pickles"))) {
    for (int protocol = 0; protocol < 6; ++protocol) {
      const fs::path path = entry.path() / (std::to_string(protocol) + ".pkl");
      if (!fs::exists(path)) {
        continue;
      }
      const std::string what = path;
      const Laid laid = lay(one_payload(read_file(path), "pkl"));
      std::size_t parts = 0;
      for (const auto& npy : fs::directory_iterator(entry.path())) {
        if (npy.path().extension() != ".npy") {
          continue;
        }
        const Npy expected = read_npy(npy.path());
        expect_array(laid, npy.path().stem(), expected, stacked(expected.shape), 0,
                     what + " " + npy.path().stem().string());
        ++parts;
      }
      EXPECT_EQ(laid.arrays.size(), parts) << what;
      EXPECT_TRUE(laid.warnings.empty()) << laid.warnings[0];
      ++cases;
    }
  }
  EXPECT_GE(cases, 150);
}

TEST(Pickles, OfWhatNeedsCodeStayBytes) {
  int cases = 0;
  for (const auto& entry : fs::directory_iterator(data_folder("pickles") / "refused")) {
    const std::string bytes = read_file(entry.path());
    const Laid laid = lay(one_payload(bytes, "pkl"));
    EXPECT_EQ(read_array(*laid.arrays.at("x")), bytes) << entry.path();
    EXPECT_EQ(laid.arrays.size(), 1U) << entry.path();
    EXPECT_FALSE(laid.warnings.empty()) << entry.path();
    ++cases;
  }
  EXPECT_EQ(cases, 9);
}

TEST(Pickles, ArraysAreMappedWhereTheyLie) {
  for (const std::string name : {"array/3.pkl", "array/5.pkl", "array/2.pkl", "fortran/3.pkl"}) {
    const Laid laid = lay(one_payload(read_file(data_folder("pickles") / name), "pickle"));
    const bool plain = name == "array/3.pkl" || name == "array/5.pkl";
    EXPECT_EQ(laid.arrays.at("x")->storage(), plain ? "mapped" : "decoded") << name;
  }
}

TEST(Pickles, ThatAreCutAreDamagedOrRight) {
  for (const auto& entry : fs::directory_iterator(data_folder("pickles"))) {
    for (const std::string protocol : {"0", "2", "4", "5"}) {
      const fs::path path = entry.path() / (protocol + ".pkl");
      if (!fs::exists(path)) {
        continue;
      }
      const std::string whole = read_file(path);
      for (std::size_t n = 1; n < whole.size(); n += n < 600 ? 1 : 17) {
        const Laid laid = lay(one_payload(whole.substr(0, n), "pkl"));
        // Without a whole record there is no part to show: the bytes, or nothing that reads.
        for (const auto& [name, array] : laid.arrays) {
          if (name == "x" && array->nbytes() > 0) {
            EXPECT_EQ(read_what_can_be(*array).find_first_not_of('?'), 0U) << path << n;
          }
        }
      }
    }
  }
}

std::string dict_sample(int label, const std::string& more = "") {
  std::string sample = "\x80\x03}(X\x05" + std::string(3, '\0') + "labelK";
  sample += static_cast<char>(label);
  return sample + more + "u.";
}

TEST(Pickles, APartThatIsMissingLeavesAGap) {
  const std::string extra = "X\x01" + std::string(3, '\0') + "eK\x09";
  FakeField field = bytes_field("x", {dict_sample(1), dict_sample(2, extra), dict_sample(3)});
  field.extension = "pkl";
  const Laid laid = lay(make_table(field));
  EXPECT_EQ(read_array(*laid.arrays.at("label")), testing::packed<std::int64_t>({1, 2, 3}));
  EXPECT_EQ(read_array(*laid.arrays.at("e")), testing::packed<std::int64_t>({9}));
  EXPECT_EQ(read_array(*laid.arrays.at("e_offsets")), testing::packed<std::int64_t>({0, 0, 1, 1}));
}

TEST(Pickles, APartOfSeveralKindsIsLeftOut) {
  const std::string number = "X\x01" + std::string(3, '\0') + "eK\x09";
  const std::string text = "X\x01" + std::string(3, '\0') + "eX\x01" + std::string(3, '\0') + "z";
  FakeField field = bytes_field("x", {dict_sample(1, number), dict_sample(2, text)});
  field.extension = "pkl";
  const Laid laid = lay(make_table(field));
  EXPECT_EQ(laid.arrays.size(), 1U);
  ASSERT_EQ(laid.warnings.size(), 1U);
  EXPECT_NE(laid.warnings[0].find("e is left out: record 1"), std::string::npos)
      << laid.warnings[0];
}

// {"label": 1, "s": np.zeros(0, [("a", "<i4")]), ...}: the dtype and its state, as numpy has them.
TEST(Pickles, APartOfAStructuredTypeIsLeftOutAlone) {
  const std::string refused = read_file(data_folder("pickles") / "refused" / "structured.pkl");
  ASSERT_EQ(refused.substr(0, 2), "\x80\x04");
  ASSERT_EQ(refused[2], '\x95');  // a frame, which need not be there
  const std::string array = refused.substr(11, refused.size() - 12);
  const std::string part = "X\x01" + std::string(3, '\0') + "s" + array;
  FakeField field = bytes_field("x", {dict_sample(1, part), dict_sample(2, part)});
  field.extension = "pkl";
  const Laid laid = lay(make_table(field));
  EXPECT_EQ(laid.arrays.size(), 1U);
  ASSERT_TRUE(laid.arrays.count("label")) << laid.warnings[0];
  EXPECT_EQ(read_array(*laid.arrays.at("label")), testing::packed<std::int64_t>({1, 2}));
  ASSERT_EQ(laid.warnings.size(), 1U);
  EXPECT_NE(laid.warnings[0].find("s is left out: record 0 has an array of dtype"),
            std::string::npos)
      << laid.warnings[0];
}

TEST(Pickles, APartWhoseNameIsTakenIsRefusedUntilItIsRenamed) {
  FakeRecords records;
  FakeField samples = bytes_field("x", {"\x80\x03K\x07K\x01\x86."});  // (7, 1)
  samples.extension = "pyd";
  FakeField labels = bytes_field("y", {"5"});
  labels.extension = "cls";
  records.fields = {samples, labels};
  try {
    lay(make_table(records));
    ADD_FAILURE();
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("both field y and the part y of the pickles in x (.pyd)"),
              std::string::npos)
        << text;
    EXPECT_NE(text.find("--name pyd_y=OTHER"), std::string::npos) << text;
  }
  FieldChoices choices;
  choices.rename["pyd_y"] = "other";  // whoever names the files does so
  const Laid laid = lay(make_table(records), choices);
  EXPECT_EQ(read_array(*laid.arrays.at("x")), testing::packed<std::int64_t>({7}));
  EXPECT_EQ(read_array(*laid.arrays.at("y")), testing::packed<std::int64_t>({5}));
  EXPECT_EQ(read_array(*laid.arrays.at("pyd_y")), testing::packed<std::int64_t>({1}));
}

TEST(Pickles, ThatAreAllDamagedAreSaidToBe) {
  const std::string cut = dict_sample(1).substr(0, 9);
  FakeField field = bytes_field("x", {cut, cut, cut});
  field.extension = "pkl";
  const Laid laid = lay(make_table(field));
  EXPECT_TRUE(laid.arrays.count("x"));
  ASSERT_EQ(laid.warnings.size(), 1U);
  EXPECT_NE(laid.warnings[0].find("record 0"), std::string::npos) << laid.warnings[0];
  EXPECT_NE(laid.warnings[0].find("2 more"), std::string::npos) << laid.warnings[0];
}

// One sample's many texts, another's long one: neither is large, all as wide as the longest is.
TEST(Pickles, TextsThatWidenOneAnotherAreLeftOut) {
  const auto texts = [](int count, std::uint32_t length) {
    std::string list = "](";
    for (int i = 0; i < count; ++i) {
      list +=
          "X" + std::string(reinterpret_cast<const char*>(&length), 4) + std::string(length, 'a');
    }
    return "X\x01" + std::string(3, '\0') + "t" + list + "e";
  };
  FakeField field =
      bytes_field("x", {dict_sample(1, texts(5000, 1)), dict_sample(2, texts(1, 50000))});
  field.extension = "pkl";
  const Laid laid = lay(make_table(field));
  EXPECT_EQ(laid.arrays.count("t"), 0U);
  EXPECT_EQ(read_array(*laid.arrays.at("label")), testing::packed<std::int64_t>({1, 2}));
  ASSERT_EQ(laid.warnings.size(), 1U);
  EXPECT_NE(laid.warnings[0].find("t is left out: record 1"), std::string::npos)
      << laid.warnings[0];
}

TEST(Pickles, SamplesOfSeveralFormsStayBytes) {
  FakeField field = bytes_field("x", {dict_sample(1), "\x80\x03K\x01."});
  field.extension = "pkl";
  const Laid laid = lay(make_table(field));
  EXPECT_TRUE(laid.arrays.count("x"));
  EXPECT_EQ(laid.arrays.count("label"), 0U);
  ASSERT_FALSE(laid.warnings.empty());
}

TEST(Pickles, LabelsOfARecordThatFailsItsChecksumAreNotAnswered) {
  FakeRecords records;
  FakeField field = bytes_field("x", {dict_sample(1), dict_sample(2), dict_sample(3)});
  field.extension = "pkl";
  records.fields = {field};
  records.checksums = true;
  const TablePtr whole = make_table(records);
  records.failing = {1};  // its last byte, the stop
  const Laid laid = lay(make_table(std::move(records)));
  const Array& label = *laid.arrays.at("label");
  EXPECT_EQ(read_array(label, {0, 8}), testing::packed<std::int64_t>({1}));
  EXPECT_THROW(read_array(label, {8, 16}), Error);
  EXPECT_EQ(read_array(label, {16, 24}), testing::packed<std::int64_t>({3}));
}

}  // namespace
}  // namespace npyfs
