// SPDX-License-Identifier: Apache-2.0

#include "formats/ffrecord/ffrecord.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "formats/bytes/crc.h"
#include "formats/bytes/endian.h"
#include "tests/formats/records.h"

namespace npyfs::testing {
namespace {

using Bytes = std::vector<std::byte>;

std::string path_of(const std::string& name) { return data_path("ffrecord/" + name); }
Opened open(const std::string& name, const OpenContext& context = {}) {
  return open_records(kFfrecord, path_of(name), context);
}
std::vector<std::string> expected(const std::string& name, std::size_t count) {
  return expected_records(path_of("expected/" + name + "/train"), count);
}

// Whether the stored checksum of an undamaged record is that of its bytes.
bool intact(const RecordTable& table, std::uint64_t record) {
  const Guard guard = table.stored().front().bytes->guard(record);
  const Checksum checksum = *guard.checksums->checksum(guard.first);
  const std::string payload = read_extents({checksum.payload});
  const std::string stored = read_extents({checksum.stored});
  return checksum.kind == Checksum::Kind::kCrc32 && stored.size() == 4 &&
         crc32(std::as_bytes(std::span(payload))) ==
             load_le<std::uint32_t>(std::as_bytes(std::span(stored)).data());
}

// The records that cannot be answered, known at opening or by checksum.
std::vector<std::uint64_t> bad_records(const RecordTable& table) {
  std::vector<std::uint64_t> bad;
  for (std::uint64_t i = 0; i < table.size(); ++i) {
    if (table.damage(i) != nullptr || !intact(table, i)) {
      bad.push_back(i);
    }
  }
  return bad;
}

// A file of zeros with these offsets behind a right header checksum; `count` zeros at its end.
Location make_file(const std::vector<std::int64_t>& offsets, std::size_t data_nbytes) {
  const std::size_t n = offsets.size();
  Bytes bytes(12 + 12 * n + data_nbytes);
  std::memcpy(bytes.data() + 4, &n, 8);
  std::memcpy(bytes.data() + 12 + 4 * n, offsets.data(), 8 * n);
  const std::uint32_t crc = crc32(std::span(bytes).subspan(4, 8 + 12 * n));
  std::memcpy(bytes.data(), &crc, 4);
  Location location;
  location.path = "made.ffr";
  location.source = std::make_shared<MemorySource>("made.ffr", std::move(bytes));
  return location;
}

std::shared_ptr<const RecordTable> open_made(const Location& location) {
  OpenContext context;
  context.warn = [](const std::string& text) { ADD_FAILURE() << text; };
  return kFfrecord.open(location, context);
}

TEST(Ffrecord, RecordsAreThoseOfTheWriter) {
  const struct {
    const char* file;
    const char* expected;
    std::size_t count;
  } cases[] = {{"fixed_f32.ffr", "fixed", 16},
               {"varlen.ffr", "varlen", 12},
               {"single.ffr", "single", 1},
               {"single_zero_length.ffr", "single_zero_length", 1},
               {"all_zero_length.ffr", "all_zero_length", 4},
               {"npy_samples.ffr", "npy-samples-raw", 8},
               {"images.ffr", "images", 5},
               {"pickled_pair.ffr", "pickled-raw", 8},
               {"bad/gap_before_first_sample_ok.ffr", "fixed", 16}};
  for (const auto& c : cases) {
    SCOPED_TRACE(c.file);
    const Opened opened = open(c.file);
    const auto records = read_records(*opened.table);
    EXPECT_EQ(records, expected(c.expected, records.size()));
    EXPECT_TRUE(bad_records(*opened.table).empty());
    EXPECT_TRUE(opened.warnings.empty());
    EXPECT_TRUE(kFfrecord.recognises(locate_file(path_of(c.file))));
  }
}

TEST(Ffrecord, AnEmptyFileHasNoRecords) {
  const Opened opened = open("empty.ffr");
  EXPECT_EQ(opened.table->size(), 0);
  EXPECT_EQ(opened.table->stored().front().bytes->equal_nbytes(), std::nullopt);
  EXPECT_TRUE(kFfrecord.recognises(locate_file(path_of("empty.ffr"))));
}

TEST(Ffrecord, EqualSamplesAreOneRun) {
  const Opened opened = open("fixed_f32.ffr");
  const ByteColumn& column = *opened.table->fields().front().bytes;
  EXPECT_EQ(column.run(0), 16);
  EXPECT_EQ(column.run(15), 1);
  EXPECT_EQ(column.equal_nbytes(), 240);
  EXPECT_NE(column.guard(3).checksums, nullptr);
  EXPECT_EQ(column.guard(3).first, 3);
  EXPECT_EQ(column.guard(3).count, 1);
}

// Whether records are verified is for the reader to say.
TEST(Ffrecord, GuardsAreStatedWhereNothingIsVerified) {
  OpenContext context;
  context.verifier = &trusting_verifier();
  const Opened opened = open("fixed_f32.ffr", context);
  EXPECT_NE(opened.table->fields().front().bytes->guard(3).checksums, nullptr);
}

TEST(Ffrecord, LastSampleOfAnotherSizeLeavesTheOthersOneRun) {
  const Opened opened = open("bad/trailing_junk.ffr");
  const ByteColumn& column = *opened.table->fields().front().bytes;
  EXPECT_EQ(column.run(0), 15);
  EXPECT_EQ(column.run(15), 1);
  EXPECT_EQ(column.equal_nbytes(), std::nullopt);
  EXPECT_EQ(read_record(*opened.table, 15).size(), 256);
}

TEST(Ffrecord, DamageIsConfinedToItsSamples) {
  const struct {
    const char* file;
    std::vector<std::uint64_t> bad;
  } cases[] = {
      {"bad/payload_bitflip.ffr", {3}},
      {"bad/sample_checksum_bitflip.ffr", {3}},
      {"bad/legacy_zero_header_checksum.ffr", {}},
      {"bad/legacy_zero_checksum_bad_offset.ffr", {4, 5}},
      {"bad/truncated_mid_last_sample.ffr", {15}},
      {"bad/truncated_mid_file.ffr", {8, 9, 10, 11, 12, 13, 14, 15}},
      {"bad/trailing_junk.ffr", {15}},
      {"bad/offsets_swapped_valid_header.ffr", {5, 6, 7}},
      {"bad/offset_past_eof_valid_header.ffr", {3, 4}},
      {"bad/offset_into_header_valid_header.ffr", {0}},
      {"bad/offset_negative_valid_header.ffr", {1, 2}},
  };
  const auto good = expected("fixed", 16);
  for (const auto& c : cases) {
    SCOPED_TRACE(c.file);
    const Opened opened = open(c.file);
    ASSERT_EQ(opened.table->size(), 16);
    EXPECT_EQ(bad_records(*opened.table), c.bad);
    for (std::uint64_t i = 0; i < 16; ++i) {
      if (std::find(c.bad.begin(), c.bad.end(), i) == c.bad.end()) {
        EXPECT_EQ(read_record(*opened.table, i), good[i]) << i;
      }
    }
  }
  EXPECT_EQ(bad_records(*open("bad/large_last_byte.ffr").table), std::vector<std::uint64_t>{1});
}

TEST(Ffrecord, DamagedSampleNamesWhereAndWhat) {
  const Opened opened = open("bad/truncated_mid_file.ffr");
  ASSERT_NE(opened.table->damage(8), nullptr);
  EXPECT_EQ(opened.table->damage(8)->error.what(),
            path_of("bad/truncated_mid_file.ffr") +
                " at byte 148: the end of sample 8 is 2364, expected 2131 (the size of the file) "
                "or less; the file is cut short or damaged");
  EXPECT_EQ(opened.table->damage(8)->nbytes, 240);
  EXPECT_EQ(opened.table->damage(14)->nbytes, 240);
  EXPECT_EQ(opened.table->damage(15)->nbytes, std::nullopt);
  EXPECT_EQ(opened.table->damage(7), nullptr);
  EXPECT_EQ(opened.table->damaged_count(), 8);
  EXPECT_EQ(opened.table->fields().front().bytes->run(0), 8);
}

TEST(Ffrecord, SizesThatCannotBeAreNotBelieved) {
  const Opened opened = open("bad/offset_past_eof_valid_header.ffr");
  EXPECT_EQ(opened.table->damage(3)->nbytes, std::nullopt);
  EXPECT_EQ(opened.table->damage(4)->nbytes, std::nullopt);
}

TEST(Ffrecord, LostHeadersAreRefused) {
  const struct {
    const char* file;
    const char* says;
  } cases[] = {
      {"header_checksum_bitflip.ffr", " at byte 0: the checksum of the header is 0x"},
      {"header_offset_bitflip.ffr", " at byte 0: the checksum of the header is 0x"},
      {"header_n_bitflip.ffr", " for 17 samples"},
      {"truncated_in_offsets.ffr", " at byte 4: the number of samples is 16, expected 0 to 6 "},
      {"truncated_in_checksums.ffr", " at byte 4: the number of samples is 16, expected 0 to 0 "},
      {"truncated_8_bytes.ffr", " at byte 0: the size of the file is 8, expected 12 or more"},
      {"zero_bytes.ffr", " at byte 0: the size of the file is 0, expected 12 or more"},
      {"n_huge_zero_checksum.ffr", "is 4611686018427387904, expected 0 to 0"},
      {"n_1e9_zero_checksum.ffr", "is 1000000000, expected 0 to 8"},
      {"n_negative.ffr", "the number of samples is -1, expected 0 to 0"},
      {"garbage.ffr", " at byte 4: the number of samples"},
      {"not_ffr_text.ffr", " at byte 4: the number of samples"},
      {"unfinished_writer.ffr", "the writer did not finish"},
  };
  for (const bool permissive : {false, true}) {
    OpenContext context;
    context.permissive = permissive;
    for (const auto& c : cases) {
      const std::string path = path_of(std::string("bad/") + c.file);
      const std::string text = refusal(kFfrecord, path, context);
      EXPECT_TRUE(text.starts_with(path)) << c.file << ": " << text;
      EXPECT_NE(text.find(c.says), std::string::npos) << c.file << ": " << text;
      EXPECT_FALSE(kFfrecord.recognises(locate_file(path))) << c.file;
    }
  }
}

TEST(Ffrecord, HeaderWithoutChecksumIsTakenWithOneWarning) {
  const Opened opened = open("bad/legacy_zero_header_checksum.ffr");
  ASSERT_EQ(opened.warnings.size(), 1);
  EXPECT_NE(opened.warnings[0].find("legacy_zero_header_checksum.ffr at byte 0: "),
            std::string::npos);
  EXPECT_EQ(read_records(*opened.table), expected("fixed", 16));
}

TEST(Ffrecord, HeadersBeyondOneBufferAreCheckedInPieces) {
  // 12 bytes a sample: three buffers of 1 MiB, ending inside one.
  const std::size_t count = 300'007;
  std::vector<std::int64_t> offsets(count);
  for (std::size_t i = 0; i < count; ++i) {
    offsets[i] = static_cast<std::int64_t>(12 + 12 * count + 3 * i);
  }
  const auto table = open_made(make_file(offsets, 3 * count));
  const ByteColumn& column = *table->fields().front().bytes;
  EXPECT_EQ(table->size(), count);
  EXPECT_EQ(column.run(0), count);
  EXPECT_EQ(column.equal_nbytes(), 3);
}

TEST(Ffrecord, ManyDamagedSamplesShareOneText) {
  std::vector<std::int64_t> offsets(5000, 1);
  const auto table = open_made(make_file(offsets, 0));
  EXPECT_EQ(table->damaged_count(), 5000);
  ASSERT_NE(table->damage(4998), nullptr);
  EXPECT_EQ(table->damage(4998), table->damage(4999));
  EXPECT_NE(table->damage(0), table->damage(1));
  EXPECT_NE(std::string(table->damage(4999)->error.what()).find("over 1024 records"),
            std::string::npos);
}

TEST(Crc, PiecesChainToTheWhole) {
  const std::string text = "123456789";
  const auto bytes = std::as_bytes(std::span(text));
  EXPECT_EQ(crc32(bytes), 0xCBF43926);
  EXPECT_EQ(crc32c(bytes), 0xE3069283);
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    EXPECT_EQ(crc32(bytes.subspan(cut), crc32(bytes.first(cut))), 0xCBF43926);
    EXPECT_EQ(crc32c(bytes.subspan(cut), crc32c(bytes.first(cut))), 0xE3069283);
  }
  EXPECT_EQ(crc32({}), 0);
}

}  // namespace
}  // namespace npyfs::testing
