// SPDX-License-Identifier: Apache-2.0

#include "formats/recordio/recordio.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <optional>

#include "formats/recordio/idx_file.h"
#include "tests/formats/records.h"

namespace npyfs::testing {
namespace {

std::string path_of(const std::string& name) { return data_path("recordio/" + name); }
Opened open(const std::string& name, const OpenContext& context = {}) {
  return open_records(kRecordio, path_of(name), context);
}
std::vector<std::string> expected(const std::string& name, std::size_t count) {
  return expected_records(path_of("expected/" + name + "/train"), count);
}
OpenContext decoding(const std::string& kind) {
  OpenContext context;
  context.decode["x"] = kind;
  return context;
}
OpenContext permissive() {
  OpenContext context;
  context.permissive = true;
  return context;
}

std::vector<std::int64_t> int_keys(const RecordTable& table) {
  std::vector<std::int64_t> keys;
  for (std::uint64_t i = 0; i < table.size(); ++i) {
    keys.push_back(table.int_key(i));
  }
  return keys;
}

std::vector<std::uint64_t> damaged(const RecordTable& table) {
  std::vector<std::uint64_t> records;
  for (std::uint64_t i = 0; i < table.size(); ++i) {
    if (table.damage(i) != nullptr) {
      records.push_back(i);
    }
  }
  return records;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::string le32(std::uint32_t value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

// A part as it stands in a file.
std::string part(std::uint32_t flag, const std::string& data) {
  return "\x0a\x23\xd7\xce" + le32(flag << 29 | static_cast<std::uint32_t>(data.size())) + data +
         std::string((4 - data.size() % 4) % 4, '\0');
}

std::string image_record(std::uint32_t flag, const std::string& labels, std::uint64_t id,
                         const std::string& image) {
  const std::string ids = {reinterpret_cast<const char*>(&id), sizeof id};
  return part(0, le32(flag) + std::string(4, '\0') + ids + std::string(8, '\0') + labels + image);
}

const std::string kJpeg = "\xff\xd8\xff\xe0jpeg";

// A .rec made of `bytes`, with an .idx where `idx` is given.
class Made {
 public:
  explicit Made(const std::string& bytes, const std::optional<std::string>& idx = std::nullopt) {
    write_file(folder_ / "d.rec", bytes);
    if (idx) {
      write_file(folder_ / "d.idx", *idx);
    }
  }
  std::string path() const { return folder_ / "d.rec"; }
  Opened open(const OpenContext& context = {}) const {
    return open_records(kRecordio, path(), context);
  }
  std::string refusal(const OpenContext& context = {}) const {
    return testing::refusal(kRecordio, path(), context);
  }

 private:
  TemporaryFolder folder_;
};

Made idx_variant(const std::string& name) {
  return Made(read_file(path_of("idx_variants/data.rec")),
              read_file(path_of("idx_variants/" + name + ".idx")));
}

TEST(Recordio, RecordsAreThoseOfTheWriter) {
  const struct {
    const char* file;
    const char* expected;
    bool keys;
  } cases[] = {{"fixed_f32", "fixed", true},
               {"fixed_u8_pad", "fixed_u8_pad", true},
               {"varlen", "varlen", true},
               {"noidx", "noidx", false},
               {"magic", "magic", true},
               {"magic_noidx", "magic-noidx", false},
               {"fixed_u32_magic", "fixed_u32_magic", true},
               {"partition_one", "partition_one", true},
               {"partition_multipart", "partition_multipart", true},
               {"single_empty_record", "single_empty_record", false},
               {"bad/nonzero_padding", "bad-nonzero-padding", false},
               {"bad/truncated_missing_padding", "fixed_u8_pad", false}};
  for (const auto& c : cases) {
    SCOPED_TRACE(c.file);
    const std::string file = std::string(c.file) + ".rec";
    const Opened opened = open(file);
    const auto records = read_records(*opened.table);
    EXPECT_EQ(records, expected(c.expected, records.size()));
    EXPECT_TRUE(opened.warnings.empty());
    EXPECT_TRUE(kRecordio.recognises(locate_file(path_of(file))));
    ASSERT_EQ(opened.table->key_kind(), c.keys ? KeyKind::kInteger : KeyKind::kNone);
    if (c.keys) {
      EXPECT_EQ(int_keys(*opened.table),
                npy_values<std::int64_t>(
                    path_of(std::string("expected/") + c.expected + "/train/keys.npy")));
    }
  }
}

TEST(Recordio, AnEmptyFileHasNoRecords) {
  const Opened opened = open("empty.rec");
  EXPECT_EQ(opened.table->size(), 0);
  EXPECT_EQ(opened.table->key_kind(), KeyKind::kInteger);
  EXPECT_EQ(opened.table->sources().size(), 2);
  EXPECT_EQ(Made("").open().table->key_kind(), KeyKind::kNone);
}

TEST(Recordio, ForOthersTheIndexLiesWhereTheFileDoes) {
  const TemporaryFolder outside;
  write_file(outside / "secret", "7\t0\n");
  const TemporaryFolder folder;
  write_file(folder / "d.rec", part(0, "abcd"));
  std::filesystem::create_symlink(outside / "secret", folder / "d.idx");
  OpenContext context;
  EXPECT_EQ(testing::refusal(kRecordio, folder / "d.rec", context), "");
  context.confine = true;
  EXPECT_TRUE(contains(testing::refusal(kRecordio, folder / "d.rec", context),
                       "d.idx: it lies outside of "));
  context.base_dir = "/";
  EXPECT_EQ(testing::refusal(kRecordio, folder / "d.rec", context), "");
}

TEST(Recordio, AnIndexThatIsALinkToNothingIsMissed) {
  const TemporaryFolder folder;
  write_file(folder / "d.rec", part(0, "abcd"));
  std::filesystem::create_symlink("nowhere", folder / "d.idx");
  OpenContext context;
  EXPECT_TRUE(contains(testing::refusal(kRecordio, folder / "d.rec", context),
                       "d.idx: cannot open: No such file"));
}

TEST(Recordio, EscapedMagicsComeBackWithoutACopy) {
  // Row 3 begins with the magic, row 7 holds it twice: their runs leave out one word at each. Row 5
  // ends with it, so that nothing follows the word to be left out.
  const Opened opened = open("fixed_u32_magic.rec");
  const ByteColumn& column = *opened.table->fields().front().bytes;
  std::vector<Extent> extents;
  std::vector<std::size_t> runs;
  for (std::uint64_t i = 0; i < column.size(); ++i) {
    column.locate(i, extents);
    runs.push_back(extents.size());
  }
  EXPECT_EQ(runs, (std::vector<std::size_t>{1, 1, 1, 2, 1, 1, 1, 3, 1, 1}));
  EXPECT_EQ(column.equal_nbytes(), 24);
}

TEST(Recordio, APayloadOfNothingButTheMagic) {
  const Made made(part(1, "") + part(3, "") + part(0, "next"));
  EXPECT_EQ(read_records(*made.open().table),
            (std::vector<std::string>{"\x0a\x23\xd7\xce", "next"}));
}

// A record of `count` parts: the payload is count - 1 magics.
std::string record_of_parts(std::size_t count) {
  std::string bytes = part(1, "");
  for (std::size_t i = 2; i < count; ++i) {
    bytes += part(2, "");
  }
  return bytes + part(3, "");
}

TEST(Recordio, ARecordOfTooManyPartsIsDamagedAlone) {
  const std::string most = record_of_parts(65536);
  const std::string more = record_of_parts(65537);
  const std::string offsets = "0\t0\n1\t12\n2\t" + std::to_string(12 + more.size()) + "\n3\t" +
                              std::to_string(12 + more.size() + most.size()) + "\n";
  const Made made[] = {
      Made(part(0, "one") + more + most + part(0, "end")),
      Made(part(0, "one") + more + most + part(0, "end"), offsets),
  };
  for (const Made& file : made) {
    const Opened opened = file.open();
    ASSERT_EQ(opened.table->size(), 4);
    EXPECT_EQ(damaged(*opened.table), (std::vector<std::uint64_t>{1}));
    const Damage& damage = *opened.table->damage(1);
    EXPECT_EQ(damage.error.to_errno(), EIO);
    EXPECT_EQ(damage.nbytes, 65536 * 4);
    EXPECT_EQ(damage.error.what(), file.path() +
                                       " at byte 12: the number of parts of the record is 65537, "
                                       "expected at most 65536; the record is not shown");
    EXPECT_EQ(read_record(*opened.table, 2).size(), 65535 * 4);
    EXPECT_EQ(read_record(*opened.table, 3), "end");
    EXPECT_TRUE(opened.warnings.empty());
  }
  // Not even the first one stops the walk.
  EXPECT_EQ(Made(more + part(0, "end")).open().table->size(), 2);
}

TEST(Recordio, APartOfOddLengthDoesNotMisalign) {
  const Opened opened = open("bad/odd_length_first_part.rec");
  EXPECT_EQ(read_record(*opened.table, 0),
            "abc\x0a\x23\xd7\xce"
            "de");
  EXPECT_EQ(opened.table->size(), 2);
}

TEST(Recordio, IndexDecidesRowsAndKeys) {
  for (const std::string name :
       {"sequential", "shuffled_lines", "crlf", "no_final_newline", "spaces_instead_of_tab",
        "unsorted_keys", "subset", "blank_line", "duplicate_keys", "duplicate_offsets"}) {
    SCOPED_TRACE(name);
    const std::string folder =
        std::filesystem::exists(path_of("expected/idx-" + name)) ? name : "sequential";
    const Opened opened = idx_variant(name).open();
    EXPECT_EQ(read_records(*opened.table), expected("idx-" + folder, 0));
    EXPECT_EQ(int_keys(*opened.table),
              npy_values<std::int64_t>(path_of("expected/idx-" + folder + "/train/keys.npy")));
    EXPECT_EQ(opened.warnings.size(), name == "duplicate_keys" ? 1 : 0);
  }
}

TEST(Recordio, KeysThatAreNoIntegersAreText) {
  const Opened opened = idx_variant("string_keys").open();
  ASSERT_EQ(opened.table->key_kind(), KeyKind::kText);
  EXPECT_EQ(read_records(*opened.table), expected("idx-string_keys", 0));
  EXPECT_EQ(opened.table->text_key(0), "img_00");
  EXPECT_EQ(opened.table->text_key(14), "img_14");
}

TEST(Recordio, AnIndexOfNoUseIsRefused) {
  const struct {
    const char* name;
    const char* says;
  } cases[] = {
      {"stale_shifted", "d.idx: line 1 names byte 4 of "},
      {"empty", "d.idx: the number of records listed is 0, expected those of "},
      {"garbage", "d.idx at byte 0: line 1 is \"\\x00\\x01\\x02not an index\", expected a key"},
  };
  for (const auto& c : cases) {
    const std::string text = idx_variant(c.name).refusal();
    EXPECT_TRUE(contains(text, c.says)) << c.name << ": " << text;
    EXPECT_TRUE(contains(text, "or remove it")) << c.name << ": " << text;
  }
  EXPECT_FALSE(idx_variant("stale_shifted").refusal(permissive()).empty());
  EXPECT_FALSE(idx_variant("garbage").refusal(permissive()).empty());
}

TEST(Recordio, OffsetsBeyondTheEndConcernTheirRows) {
  for (const char* name : {"past_eof", "minus_one"}) {
    SCOPED_TRACE(name);
    const Opened opened = idx_variant(name).open();
    ASSERT_EQ(opened.table->size(), 3);
    EXPECT_EQ(damaged(*opened.table), (std::vector<std::uint64_t>{1, 2}));
    EXPECT_EQ(read_record(*opened.table, 0), "");
    EXPECT_TRUE(contains(opened.table->damage(1)->error.what(), "d.idx: line 2 names byte "));
  }
}

TEST(Recordio, ALineThatIsNoneIsLeftOutIfPermitted) {
  const Made made(part(0, "a") + part(0, "b"), "0\t0\nnothing\n1\t12\nx\n");
  EXPECT_TRUE(contains(made.refusal(), "d.idx at byte 4: line 2 is \"nothing\""));
  const Opened opened = made.open(permissive());
  EXPECT_EQ(read_records(*opened.table), (std::vector<std::string>{"a", "b"}));
  ASSERT_EQ(opened.warnings.size(), 1);
  EXPECT_TRUE(contains(opened.warnings[0], "; left out (and 1 more lines)"));
}

TEST(Recordio, WithAnIndexDamageIsConfinedToItsRecord) {
  const struct {
    const char* name;
    std::vector<std::uint64_t> bad;
    const char* good;
    std::optional<std::uint64_t> nbytes;
  } cases[] = {
      {"payload_bitflip", {}, "bad-payload", {}},
      {"magic_bitflip", {4}, "fixed", {}},
      {"length_too_big", {4}, "fixed", {}},
      {"cflag_5", {4}, "fixed", {}},
      {"lone_middle_part", {4}, "fixed", {}},
      {"start_then_complete", {4}, "fixed", {}},
      {"start_without_end", {15}, "fixed", {}},
      {"truncated_mid_payload", {15}, "fixed", 32},
      {"truncated_mid_payload_aligned", {15}, "fixed", 32},
      {"truncated_in_header", {15}, "fixed", {}},
      {"multipart_second_magic_bitflip", {9}, "magic", {}},
      {"idx_points_at_second_part", {9}, "magic", {}},
      {"trailing_zeros", {}, "fixed", {}},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.name);
    const Opened opened = open(std::string("bad/") + c.name + ".rec");
    auto records = expected(c.good, opened.table->size());
    for (const std::uint64_t bad : c.bad) {
      records[bad] = "(damaged)";
      EXPECT_EQ(opened.table->damage(bad)->nbytes, c.nbytes);
      EXPECT_TRUE(contains(opened.table->damage(bad)->error.what(), c.name));
    }
    EXPECT_EQ(read_records(*opened.table), records);
    EXPECT_EQ(opened.table->damaged_count(), c.bad.size());
    EXPECT_EQ(opened.warnings.size(), c.name == std::string("trailing_zeros") ? 1 : 0);
  }
}

TEST(Recordio, ALengthThatSwallowsAListedRecordIsDamage) {
  const Made made(part(0, "aaaa").replace(4, 1, "\x0c") + part(0, "bbbb") + part(0, "cccc"),
                  "0\t0\n1\t12\n2\t24\n");
  EXPECT_EQ(read_records(*made.open().table),
            (std::vector<std::string>{"(damaged)", "bbbb", "cccc"}));
}

TEST(Recordio, WithoutAnIndexLostFramingIsRefused) {
  for (const char* name :
       {"magic_bitflip", "length_too_big", "length_too_small", "cflag_5", "lone_middle_part",
        "start_without_end", "start_then_complete", "truncated_mid_payload", "truncated_in_header",
        "trailing_zeros", "multipart_second_magic_bitflip"}) {
    SCOPED_TRACE(name);
    const Made made(read_file(path_of(std::string("bad/") + name + ".rec")));
    EXPECT_TRUE(made.refusal().starts_with(made.path() + " at byte ")) << made.refusal();
    const Opened opened = made.open(permissive());
    EXPECT_GE(opened.table->size(), 4);
    EXPECT_EQ(opened.table->damaged_count(), 0);
    ASSERT_EQ(opened.warnings.size(), 1);
    EXPECT_TRUE(contains(opened.warnings[0], "records before byte"));
  }
  EXPECT_EQ(testing::refusal(kRecordio, path_of("bad/magic_bitflip_noidx.rec")),
            path_of("bad/magic_bitflip_noidx.rec") +
                " at byte 160: the magic of a record is 0xced7270a, expected 0xced7230a; the file "
                "is damaged or cut short");
}

TEST(Recordio, WhatDoesNotBeginWithARecordIsRefusedAlways) {
  for (const char* name : {"garbage", "text_file", "garbage_before_first"}) {
    const std::string path = path_of(std::string("bad/") + name + ".rec");
    EXPECT_TRUE(testing::refusal(kRecordio, path, permissive()).starts_with(path + " at byte 0: "));
    EXPECT_FALSE(kRecordio.recognises(locate_file(path)));
  }
}

TEST(Recordio, ImageRecordsHaveImagesLabelsAndIds) {
  for (const std::string name : {"image_single", "image_multi", "image_relabel"}) {
    for (const char* kind : {"", "imagerecord"}) {
      SCOPED_TRACE(name + kind);
      const std::string folder = path_of("expected/" + name + "/train");
      const Opened opened = open(name + ".rec", decoding(kind));
      const RecordTable& table = *opened.table;
      ASSERT_EQ(table.fields().size(), 3);
      EXPECT_EQ(read_records(table), expected_records(folder, table.size()));
      EXPECT_EQ(table.fields()[1].name, "y");
      EXPECT_EQ(table.fields()[2].name, "id");
      EXPECT_EQ(read_planned(*table.fields()[1].typed), npy_data(folder + "/y.npy"));
      EXPECT_EQ(read_planned(*table.fields()[2].typed), npy_data(folder + "/id.npy"));
      EXPECT_EQ(int_keys(table), npy_values<std::int64_t>(folder + "/keys.npy"));
      ASSERT_TRUE(table.fields()[1].typed->uniform());
      EXPECT_EQ(table.fields()[1].typed->uniform()->shape,
                name == "image_multi" ? Shape{4} : Shape{});
      EXPECT_EQ(table.fields()[1].typed->run(0), table.size());
      EXPECT_EQ(table.fields()[2].typed->run(1), table.size() - 1);
      EXPECT_TRUE(opened.warnings.empty());
    }
  }
}

TEST(Recordio, ImageRecordsStayBytesWhereTheUserSaysSo) {
  const Opened opened = open("image_single.rec", decoding("raw"));
  EXPECT_EQ(opened.table->fields().size(), 1);
  EXPECT_EQ(read_records(*opened.table), expected("image-raw", opened.table->size()));
}

TEST(Recordio, RecordsWithoutAnImageAreLeftOut) {
  // The layout of face recognition sets: two labels and no image first, then images.
  const std::string head = image_record(2, std::string(8, 'L'), 0, "");
  const Made made(
      head + image_record(0, "", 1, kJpeg) + part(0, "") + image_record(0, "", 2, kJpeg),
      "0\t0\n1\t40\n2\t80\n3\t88\n");
  const Opened opened = made.open();
  EXPECT_EQ(read_records(*opened.table), (std::vector<std::string>{kJpeg, kJpeg}));
  EXPECT_EQ(int_keys(*opened.table), (std::vector<std::int64_t>{1, 3}));
  ASSERT_EQ(opened.warnings.size(), 1);
  EXPECT_TRUE(contains(opened.warnings[0], "2 of 4 records hold no image")) << opened.warnings[0];

  const Opened demanded = made.open(decoding("imagerecord"));
  EXPECT_EQ(read_records(*demanded.table),
            (std::vector<std::string>{"", kJpeg, "(damaged)", kJpeg}));
}

TEST(Recordio, WhatOnlyBeginsLikeAnImageIsPlain) {
  for (const char* payload : {"\x89PNG, no image", "RIFFsizeWAVEfmt "}) {
    const Opened opened = Made(image_record(0, "", 1, payload)).open();
    EXPECT_EQ(opened.table->fields().size(), 1) << payload;
  }
  const Opened opened = Made(image_record(0, "", 1, "RIFFsizeWEBPVP8 ")).open();
  EXPECT_EQ(opened.table->fields().size(), 3);
}

TEST(Recordio, LabelCountsMayDiffer) {
  const Made made(image_record(0, "", 7, kJpeg) + image_record(3, "aaaabbbbcccc", 8, kJpeg) +
                  image_record(1, "dddd", 9, kJpeg) + image_record(1, "eeee", 10, kJpeg));
  const Opened opened = made.open();
  const Column& y = *opened.table->fields()[1].typed;
  EXPECT_FALSE(y.uniform());
  Item item;
  std::vector<Shape> shapes;
  std::vector<std::uint64_t> runs;
  for (std::uint64_t i = 0; i < 4; ++i) {
    y.inspect(i, item);
    shapes.push_back(item.shape);
    runs.push_back(y.run(i));
  }
  EXPECT_EQ(shapes, (std::vector<Shape>{{1}, {3}, {1}, {1}}));
  // They lie back to back in memory, but a run is of one size.
  EXPECT_EQ(runs, (std::vector<std::uint64_t>{1, 1, 2, 1}));
  EXPECT_EQ(read_planned(y), std::string(4, '\0') + "aaaabbbbccccddddeeee");
  EXPECT_EQ(read_records(*opened.table), std::vector<std::string>(4, kJpeg));
}

TEST(Recordio, LabelsThatHoldTheMagicAreFound) {
  // flag 1, its label is the magic: the writer cut the payload there.
  const std::string fixed = le32(1) + std::string(4, '\0') + std::string(16, '\0');
  const Made made(part(1, fixed) + part(3, kJpeg) + image_record(1, "dddd", 9, kJpeg));
  const Opened opened = made.open();
  EXPECT_EQ(read_records(*opened.table), (std::vector<std::string>{kJpeg, kJpeg}));
  EXPECT_EQ(read_planned(*opened.table->fields()[1].typed),
            "\x0a\x23\xd7\xce"
            "dddd");
}

TEST(Recordio, ADamagedImageRecordHasNoLabel) {
  const Made made(image_record(0, "", 7, kJpeg) + image_record(0, "", 8, kJpeg).replace(0, 1, "X") +
                      image_record(0, "", 9, kJpeg),
                  "0\t0\n1\t40\n2\t80\n");
  const Opened opened = made.open();
  const Column& id = *opened.table->fields()[2].typed;
  Item item;
  id.inspect(1, item);
  EXPECT_EQ(item.damage, opened.table->damage(1));
  ASSERT_NE(item.damage, nullptr);
  EXPECT_FALSE(id.uniform());
  EXPECT_EQ(id.run(0), 1);
  Plan plan;
  id.plan(2, {0, 8}, plan);
  EXPECT_EQ(static_cast<int>(*plan.pieces()[0].memory), 9);
}

TEST(Recordio, ACutImageRecordHasNoSize) {
  std::string bytes = image_record(2, "aaaabbbb", 7, kJpeg);
  const std::size_t first = bytes.size();
  bytes += image_record(1, "cccc", 8, kJpeg);
  bytes.resize(bytes.size() - 4);
  const Made made(bytes, "0\t0\n1\t" + std::to_string(first) + "\n");
  EXPECT_EQ(made.open().table->damage(1)->nbytes, std::nullopt);
}

TEST(IdxPath, IsNextToTheFile) {
  EXPECT_EQ(idx_path("a/train.rec"), "a/train.idx");
  EXPECT_EQ(idx_path("a.b/train"), "a.b/train.idx");
  EXPECT_EQ(idx_path("a/.rec"), "a/.rec.idx");
  EXPECT_EQ(idx_path("train-00000-of-00003.v2.rec"), "train-00000-of-00003.v2.idx");
}

}  // namespace
}  // namespace npyfs::testing
