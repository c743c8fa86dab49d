// SPDX-License-Identifier: Apache-2.0
//
// Annotations, labels and sample types of DAS.

#include "formats/das/das.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <random>
#include <string>

#include "formats/bytes/error.h"
#include "formats/das/annotations.h"
#include "formats/das/csv.h"
#include "formats/das/label_grid.h"
#include "formats/das/sample_types.h"
#include "tests/formats/records.h"
#include "tests/support/fake_table.h"
#include "tests/support/read_plan.h"

namespace npyfs {
namespace {

using Rows = std::vector<std::vector<std::string>>;

Rows read_csv(const std::string& text) {
  CsvReader reader(text, "a.csv");
  Rows rows;
  for (std::vector<std::string> fields; reader.next(fields);) {
    rows.push_back(fields);
  }
  return rows;
}

std::string refusal_of(const std::string& text) {
  try {
    parse_annotations(text, "a.csv");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Csv, FieldsAndRows) {
  EXPECT_EQ(read_csv("a,b\n1,2"), (Rows{{"a", "b"}, {"1", "2"}}));
  EXPECT_EQ(read_csv("a,b\r\n\r\n1,\r\n"), (Rows{{"a", "b"}, {"1", ""}}));
  EXPECT_EQ(read_csv("\xef\xbb\xbf"
                     "a\n"),
            (Rows{{"a"}}));
  EXPECT_EQ(read_csv(",,\n"), (Rows{{"", "", ""}}));
  EXPECT_EQ(read_csv(""), Rows{});
}

TEST(Csv, QuotesHoldAnything) {
  EXPECT_EQ(read_csv("\"a,b\",\"say \"\"hi\"\"\"\n\"two\nlines\",x"),
            (Rows{{"a,b", "say \"hi\""}, {"two\nlines", "x"}}));
  EXPECT_EQ(read_csv("\"\",\"\""), (Rows{{"", ""}}));
}

TEST(Csv, LinesAreCountedThroughQuotes) {
  const std::string text = "\"two\nlines\"\n\nlast";
  CsvReader reader(text, "a.csv");
  std::vector<std::string> fields;
  ASSERT_TRUE(reader.next(fields));
  EXPECT_EQ(reader.line(), 1U);
  ASSERT_TRUE(reader.next(fields));
  EXPECT_EQ(reader.line(), 4U);
}

TEST(Annotations, ColumnsAreFoundByName) {
  const auto rows =
      parse_annotations(",stop_seconds,name,start_seconds\n0,2.5, sine ,+1e-1\n1,,bip,\n", "a.csv");
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].name, " sine ");
  EXPECT_EQ(rows[0].start_seconds, 0.1);
  EXPECT_EQ(rows[0].stop_seconds, 2.5);
  EXPECT_FALSE(rows[1].marks());
  EXPECT_EQ(rows[1].line, 3U);
}

TEST(Annotations, EventsAndSegments) {
  const auto rows = parse_annotations(
      "name,start_seconds,stop_seconds\na,1,1\nb,1,2\nc,,\nd,nan,0.0\ne,NA\n", "a.csv");
  ASSERT_EQ(rows.size(), 5U);
  EXPECT_TRUE(rows[0].is_event());
  EXPECT_FALSE(rows[1].is_event());
  EXPECT_TRUE(rows[2].is_event());
  EXPECT_FALSE(rows[3].is_event());
  EXPECT_TRUE(rows[4].is_event());
}

TEST(Annotations, ForOthersLieWhereTheRecordingDoes) {
  const testing::TemporaryFolder outside;
  testing::write_file(outside / "secret", "root:x:0:0\n");
  const testing::TemporaryFolder folder;
  testing::write_file(folder / "r.wav", "not looked at yet");
  std::filesystem::create_symlink(outside / "secret", folder / "r_annotations.csv");
  const auto refused = [&](bool confine) {
    OpenContext context;
    context.confine = confine;
    return testing::refusal_of(
        [&] { kDas.open_store(testing::locate_file(folder / "r.wav"), context); });
  };
  EXPECT_NE(refused(false).text.find("there is no column name"), std::string::npos);
  EXPECT_EQ(refused(true).kind, ErrorKind::kUnsupported);
  EXPECT_NE(refused(true).text.find("it lies outside of"), std::string::npos);
}

TEST(Annotations, FaultsNameTheLine) {
  const std::string head = "name,start_seconds,stop_seconds\n";
  const std::pair<std::string, std::string> faults[] = {
      {"", "empty"},
      {"name,start_seconds\n", "line 1: there is no column stop_seconds"},
      {head + "a,1,2\n\nb,x,2\n", "line 4: start_seconds is 'x'"},
      {head + "a,1,inf\n", "line 2: stop_seconds is 'inf'"},
      {head + "a,1,\n", "line 2: stop_seconds is missing"},
      {head + ",1,2\n", "line 2: the name is empty"},
      {head + "a,1,2,3\n", "line 2: there are 4 fields"},
      {head + "a,1,\"2\n", "line 2: a quote is opened"},
      {head + "a,\"1\"2,3\n", "line 2: text follows a closing quote"},
  };
  for (const auto& [text, words] : faults) {
    const std::string said = refusal_of(text);
    EXPECT_NE(said.find(words), std::string::npos) << said;
    EXPECT_NE(said.find("a.csv"), std::string::npos) << said;
  }
}

FrameRange marked(double start, double stop) {
  Annotation row;
  row.start_seconds = start;
  row.stop_seconds = stop;
  return marked_frames(row, 10, 100);
}

TEST(Annotations, MarkFramesAsPythonsSlicesDo) {
  const auto expect = [](FrameRange range, std::uint64_t begin, std::uint64_t end) {
    EXPECT_EQ(range.begin, begin);
    EXPECT_EQ(range.end, end);
  };
  expect(marked(1, 2), 10, 21);
  expect(marked(1.09, 1.09), 10, 11);  // an event
  expect(marked(9.9, 50), 99, 100);    // beyond the end
  expect(marked(20, 50), 0, 0);
  expect(marked(3, 1), 0, 0);       // backwards
  expect(marked(-0.09, 1), 0, 11);  // cut towards zero
  expect(marked(-1, 9.5), 90, 96);  // counted from the end
  expect(marked(-50, 1), 0, 11);
  expect(marked(1e300, 1e300), 0, 0);
  expect(marked(-1e300, 1e300), 0, 100);
}

// Row by row, as DAS fills and normalises its matrix.
std::vector<float> plain_labels(const std::vector<std::vector<MarkedFrames::Interval>>& classes,
                                std::uint64_t frames) {
  std::vector<float> out;
  for (std::uint64_t frame = 0; frame < frames; ++frame) {
    std::vector<double> row(classes.size() + 1);
    double sum = 0;
    for (std::size_t i = 0; i < classes.size(); ++i) {
      for (const auto& interval : classes[i]) {
        if (interval.begin <= frame && frame < interval.end) {
          row[i + 1] = 1;
        }
      }
      sum += row[i + 1];
    }
    row[0] = sum == 0 ? 1 : 0;
    for (std::size_t i = 1; i < row.size(); ++i) {
      row[i] = sum > 1 ? row[i] / sum : row[i];
    }
    out.insert(out.end(), row.begin(), row.end());
  }
  return out;
}

TEST(LabelGrid, EqualsAPlainMatrix) {
  const char* given = std::getenv("NPYFS_TEST_SEED");
  const auto seed = given != nullptr ? static_cast<std::uint32_t>(std::strtoul(given, nullptr, 10))
                                     : std::random_device()();
  SCOPED_TRACE("NPYFS_TEST_SEED=" + std::to_string(seed));
  std::mt19937 random(seed);
  for (int round = 0; round < 30; ++round) {
    // Often more rows than one chunk has.
    const std::uint64_t frames = random() % (round % 2 == 0 ? 50 : 40'000);
    std::vector<std::vector<MarkedFrames::Interval>> plain(random() % 5);
    std::vector<MarkedFrames> classes(plain.size());
    for (std::size_t i = 0; i < plain.size(); ++i) {
      for (std::size_t k = random() % 20; k > 0 && frames > 0; --k) {
        const std::uint64_t begin = random() % frames;
        const std::uint64_t end = begin + random() % (frames - begin + 1);
        plain[i].push_back({begin, end});
        classes[i].add(begin, end);
      }
      classes[i].merge();
    }
    const auto grid = make_label_grid(classes, frames);
    std::string bytes;
    for (std::uint64_t chunk = 0; chunk < grid->chunk_count(); ++chunk) {
      ASSERT_EQ(grid->locate(chunk).kind, ChunkPlace::Kind::kDecoded);
      bytes += testing::text_of(testing::decode_chunk(*grid, chunk).bytes);
    }
    ASSERT_TRUE(bytes == testing::packed(plain_labels(plain, frames))) << "round " << round;
  }
}

std::string promoted(const std::string& a, const std::string& b) {
  const auto type = promoted_type(DType::simple(a), DType::simple(b));
  return type ? type->text() : "none";
}

// numpy.result_type of each pair.
TEST(SampleTypes, PromoteAsNumpyDoes) {
  const char* const cases[][3] = {
      {"|u1", "|u1", "|u1"}, {"|u1", "<i2", "<i2"},  {"|u1", "|i1", "<i2"}, {"<u2", "<i2", "<i4"},
      {"<u4", "<i2", "<i8"}, {"<u4", "<i4", "<i8"},  {"<u8", "<i8", "<f8"}, {"<u8", "|i1", "<f8"},
      {"<i2", "<f4", "<f4"}, {"<i4", "<f4", "<f8"},  {"<i2", "<f2", "<f4"}, {"|i1", "<f2", "<f2"},
      {"<f2", "<f4", "<f4"}, {"<f4", "<f8", "<f8"},  {"<i8", "<f2", "<f8"}, {">i2", "<i2", "<i2"},
      {">f4", ">f4", ">f4"}, {"<i2", "|b1", "none"}, {"<c8", "<f4", "none"}};
  for (const auto& [a, b, expected] : cases) {
    EXPECT_EQ(promoted(a, b), expected) << a << " " << b;
    EXPECT_EQ(promoted(b, a), expected) << b << " " << a;
  }
}

template <typename From, typename To>
std::vector<To> converted(const std::string& from, const std::vector<From>& in,
                          const std::string& to) {
  std::vector<To> out(in.size());
  convert_samples(DType::simple(from), std::as_bytes(std::span(in)), DType::simple(to),
                  std::as_writable_bytes(std::span(out)));
  return out;
}

TEST(SampleTypes, Convert) {
  EXPECT_EQ((converted<std::int16_t, float>("<i2", {-3, 32767}, "<f4")),
            (std::vector<float>{-3, 32767}));
  EXPECT_EQ((converted<std::uint16_t, std::int32_t>(">u2", {0x0100, 0xffff}, "<i4")),
            (std::vector<std::int32_t>{1, 65535}));
  EXPECT_EQ((converted<std::int64_t, double>("<i8", {INT64_MAX}, "<f8")),
            (std::vector<double>{9223372036854775808.0}));
  // 1, -2, the largest, the least above 0, infinity
  const std::vector<float> halves =
      converted<std::uint16_t, float>("<f2", {0x3c00, 0xc000, 0x7bff, 0x0001, 0x7c00}, "<f4");
  EXPECT_EQ(halves, (std::vector<float>{1, -2, 65504, std::ldexp(1.0F, -24), INFINITY}));
  EXPECT_EQ((converted<std::uint16_t, std::uint16_t>(">f2", {0x003c}, "<f2")),
            (std::vector<std::uint16_t>{0x3c00}));
}

TEST(SampleTypes, EveryInt8IsAFloat16) {
  for (int value = -128; value < 128; ++value) {
    const auto half =
        converted<std::int8_t, std::uint16_t>("|i1", {static_cast<std::int8_t>(value)}, "<f2");
    EXPECT_EQ((converted<std::uint16_t, float>("<f2", half, "<f4")),
              (std::vector<float>{static_cast<float>(value)}));
  }
}

}  // namespace
}  // namespace npyfs
