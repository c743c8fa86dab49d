// SPDX-License-Identifier: Apache-2.0
//
// Tar shards: the walk against libarchive's, names and samples, compressed shards, damage.

#include "formats/tar/tar.h"

#include <archive.h>
#include <archive_entry.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <clocale>
#include <filesystem>
#include <map>

#include "formats/archives/tar_extensions.h"
#include "formats/archives/tar_index.h"
#include "formats/archives/tar_table.h"
#include "formats/archives/tar_walk.h"
#include "formats/bytes/npy_header.h"
#include "formats/bytes/spool.h"
#include "formats/bytes/unpack.h"
#include "formats/payloads/payload.h"
#include "tests/formats/records.h"
#include "tests/support/one_chunk_cache.h"
#include "tests/support/read_plan.h"
#include "tests/support/tar_writer.h"

namespace npyfs::testing {

namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using std::string_literals::operator""s;

struct Found {
  std::string name;
  std::uint64_t nbytes = 0;
  std::uint64_t offset = 0;  // of the first stored byte; 0 where there is none
  std::vector<std::pair<std::uint64_t, std::uint64_t>> pieces;
  bool operator==(const Found&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Found& found) {
  return out << found.name << " " << found.offset << "+" << found.nbytes << " in "
             << found.pieces.size() << " pieces";
}

// Regular files, as libarchive finds them.
std::vector<Found> walk_libarchive(const std::string& path) {
  std::setlocale(LC_CTYPE, "C.UTF-8");
  const std::unique_ptr<archive, int (*)(archive*)> reader(archive_read_new(), archive_read_free);
  archive_read_support_format_tar(reader.get());
  archive_read_set_options(reader.get(), "tar:read_concatenated_archives");
  EXPECT_EQ(archive_read_open_filename(reader.get(), path.c_str(), 10240), ARCHIVE_OK);
  std::vector<Found> all;
  archive_entry* entry = nullptr;
  while (archive_read_next_header(reader.get(), &entry) == ARCHIVE_OK) {
    if (archive_entry_filetype(entry) != AE_IFREG || archive_entry_hardlink(entry) != nullptr) {
      continue;
    }
    Found found;
    found.name = archive_entry_pathname(entry);
    found.nbytes = static_cast<std::uint64_t>(archive_entry_size(entry));
    found.offset = static_cast<std::uint64_t>(archive_filter_bytes(reader.get(), 0));
    if (archive_entry_sparse_count(entry) > 0) {
      const void* bytes = nullptr;
      std::size_t size = 0;
      la_int64_t offset = 0;
      while (archive_read_data_block(reader.get(), &bytes, &size, &offset) == ARCHIVE_OK) {
        const auto at = static_cast<std::uint64_t>(offset);
        if (!found.pieces.empty() && found.pieces.back().first + found.pieces.back().second == at) {
          found.pieces.back().second += size;
        } else if (size > 0) {
          found.pieces.emplace_back(at, size);
        }
      }
    }
    all.push_back(std::move(found));
  }
  return all;
}

std::vector<Found> walk_ours(const std::string& path) {
  const auto source = FileSource::open(path, path);
  TarWalk walk(*source);
  TarMember member;
  std::vector<Found> all;
  while (walk.next(member)) {
    if (member.kind != TarMember::Kind::kFile) {
      continue;
    }
    Found found{std::string(member.name), member.nbytes, member.offset, {}};
    for (const SparsePiece& piece : member.pieces) {
      if (piece.nbytes > 0) {
        found.pieces.emplace_back(piece.offset, piece.nbytes);
      }
    }
    all.push_back(std::move(found));
  }
  return all;
}

TEST(TarWalk, FindsWhatLibarchiveFindsInEveryGoldenArchive) {
  int archives = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(data_path("tar"))) {
    if (entry.path().extension() == ".tar" && entry.path().parent_path().filename() != "bad") {
      ++archives;
      EXPECT_EQ(walk_ours(entry.path()), walk_libarchive(entry.path())) << entry.path();
    }
  }
  EXPECT_GE(archives, 30);
}

Opened open_bytes(const std::string& bytes, OpenContext context = {},
                  TarGrouping grouping = TarGrouping::kWebDataset) {
  Opened opened;
  context.warn = [&opened](const std::string& text) { opened.warnings.push_back(text); };
  TarIndexer indexer(grouping, context);
  indexer.add_shard(std::make_shared<MemorySource>("t.tar", bytes_of(bytes)));
  opened.table = make_tar_table(indexer.finish(), {}, context.warn);
  return opened;
}

std::string refusal_of(const std::string& bytes) {
  try {
    open_bytes(bytes);
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

const Field* find_field(const RecordTable& table, const std::string& name) {
  for (const Field& field : table.fields()) {
    if (field.name == name) {
      return &field;
    }
  }
  return nullptr;
}

// Of a record's field; "(absent)" where it has none.
std::string field_bytes(const RecordTable& table, const std::string& name, std::uint64_t record) {
  const Field* field = find_field(table, name);
  std::vector<Extent> extents;
  return field != nullptr && field->bytes->locate(record, extents) ? read_extents(extents)
                                                                   : "(absent)";
}

std::vector<std::string> keys_of(const RecordTable& table) {
  std::vector<std::string> keys;
  for (std::uint64_t i = 0; i < table.size(); ++i) {
    keys.emplace_back(table.text_key(i));
  }
  return keys;
}

std::vector<std::string> names_of(const RecordTable& table) {
  std::vector<std::string> names;
  for (const Field& field : table.fields()) {
    names.push_back(field.name);
  }
  return names;
}

std::string split_text(std::string_view name, TarGrouping grouping = TarGrouping::kWebDataset) {
  const auto split = split_member_name(name, grouping);
  return split ? std::string(split->key) + "|" + std::string(split->extension) : "-";
}

// As re.match(r"^((?:.*/|)[^.]+)[.]([^/]*)$", name) splits them.
TEST(TarNames, AreSplitAsWebDatasetSplitsThem) {
  EXPECT_EQ(split_text("v1.0/a.b.c.txt"), "v1.0/a|b.c.txt");
  EXPECT_EQ(split_text("d..txt"), "d|.txt");
  EXPECT_EQ(split_text("trail."), "trail|");
  EXPECT_EQ(split_text("noext"), "-");
  EXPECT_EQ(split_text(".top"), "-");
  EXPECT_EQ(split_text("x/.hidden"), "x/|hidden");
  EXPECT_EQ(split_text("a.b/.q"), "-");
  EXPECT_EQ(split_text("a.b/c/.q"), "a.b/c/|q");
  EXPECT_EQ(split_text("/.q"), "/|q");
  EXPECT_EQ(split_text("./a.txt"), "./a|txt");
  EXPECT_EQ(split_text("__meta__"), "-");
  EXPECT_EQ(split_text("__dir__/q.txt"), "-");
  EXPECT_EQ(split_text("__meta__.json"), "__meta__|json");
  EXPECT_EQ(split_text("q/__m__.txt"), "q/__m__|txt");
}

TEST(TarNames, AreSplitAsWenetSplitsThem) {
  EXPECT_EQ(split_text("spk.1/utt.0001.wav", TarGrouping::kWenet), "spk.1/utt.0001|wav");
  EXPECT_EQ(split_text("noext", TarGrouping::kWenet), "-");
  EXPECT_EQ(split_text(".wav", TarGrouping::kWenet), "-");
}

TEST(TarFields, TheFirstOfTheListIsXWhateverTheShardBeforeHad) {
  const auto table = open_bytes(tar_member({"a.jpg", "J"}) + tar_member({"a.label", "1"}) +
                                tar_member({"a.seg.png", "S"}) + tar_member({"a.left.npy", "L"}) +
                                tar_member({"a.png", "P"}) + tar_end())
                         .table;
  EXPECT_THAT(names_of(*table), ElementsAre("x", "y", "seg_png", "left", "png"));
  EXPECT_EQ(find_field(*table, "left")->extension, "npy");
  EXPECT_EQ(find_field(*table, "seg_png")->extension, "png");
  const auto other =
      open_bytes(tar_member({"a.x.png", "X"}) + tar_member({"a.npy", "N"}) +
                 tar_member({"a.cls", "1"}) + tar_member({"a.label", "2"}) + tar_end())
          .table;
  EXPECT_THAT(names_of(*other), ElementsAre("x", "npy", "y", "label"));
}

TEST(TarFields, TheSecondOfTwoExtensionsOfOneNameGetsANumber) {
  const auto opened = open_bytes(tar_member({"a.l_png_2", "0"}) + tar_member({"a.l.png", "1"}) +
                                 tar_member({"a.l_png", "2"}) + tar_end());
  EXPECT_THAT(names_of(*opened.table), ElementsAre("l_png_2", "l_png", "l_png_3"));
  EXPECT_EQ(field_bytes(*opened.table, "l_png", 0), "1");
  EXPECT_EQ(field_bytes(*opened.table, "l_png_3", 0), "2");
  EXPECT_THAT(opened.warnings, ElementsAre(AllOf(HasSubstr("t.tar"), HasSubstr("'l.png'"),
                                                 HasSubstr("'l_png'"), HasSubstr("'l_png_3'"))));
}

TEST(TarFields, AnExtensionThatIsNoFileNameIsLeftOut) {
  const std::string longest(3000, 'e');
  const auto opened = open_bytes(tar_member({"././@LongLink", "a." + longest + '\0', 'L'}) +
                                 tar_member({"a.e", "1"}) + tar_member({"a.txt", "2"}) + tar_end());
  EXPECT_THAT(names_of(*opened.table), ElementsAre("txt"));
  EXPECT_EQ(opened.table->stored().size(), 1U);
  ASSERT_EQ(opened.warnings.size(), 1U);
  EXPECT_THAT(opened.warnings[0], AllOf(HasSubstr("3000 bytes"), HasSubstr("left out")));
  EXPECT_LT(opened.warnings[0].size(), 300U);
}

TEST(TarFields, ThousandsOfExtensionsAreNone) {
  std::string bytes;
  for (int i = 0; i < 5000; ++i) {
    bytes += tar_member({"a" + std::to_string(i) + "." + std::to_string(i) + ".txt", ""});
  }
  EXPECT_THAT(refusal_of(bytes + tar_end()), HasSubstr("different extensions"));
}

TEST(TarSamples, AFieldThatIsMissingHereAndThereIsFoundWhereItIs) {
  std::string bytes;
  for (int i = 0; i < 20; ++i) {
    const std::string key = "k" + std::to_string(i);
    bytes += tar_member({key + ".a", "a" + key});
    bytes += i % 3 == 1 ? tar_member({key + ".b", "b" + key}) : "";
    bytes += i < 5 ? tar_member({key + ".c", "c" + key}) : "";
  }
  const auto table = open_bytes(bytes + tar_end()).table;
  ASSERT_EQ(table->size(), 20U);
  for (int i = 0; i < 20; ++i) {
    const std::string key = "k" + std::to_string(i);
    const auto record = static_cast<std::uint64_t>(i);
    EXPECT_EQ(field_bytes(*table, "a", record), "a" + key);
    EXPECT_EQ(field_bytes(*table, "b", record), i % 3 == 1 ? "b" + key : "(absent)");
    EXPECT_EQ(field_bytes(*table, "c", record), i < 5 ? "c" + key : "(absent)");
  }
}

TEST(TarSamples, TheLongNameWinsOverThePaxPathAndGlobalPathsMeanNothing) {
  const auto opened = open_bytes(
      tar_member({"g", "15 path=no.txt\n", 'g'}) + tar_member({"L", "long.txt\0"s, 'L'}) +
      tar_member({"x", "16 path=pax.txt\n", 'x'}) + tar_member({"short.txt", "1"}) +
      tar_member({"x", "16 path=pax.txt\n10 size=3\n", 'x'}) +
      tar_member({"short.txt", "abc", '0', "", octal(1, 11)}) + tar_end());
  EXPECT_THAT(keys_of(*opened.table), ElementsAre("long", "pax"));
  EXPECT_EQ(field_bytes(*opened.table, "txt", 1), "abc");
}

TEST(TarSamples, TheEndOfAnArchiveEndsASample) {
  const std::string one = tar_member({"a.txt", "1"});
  const auto opened = open_bytes(one + tar_end() + one + tar_end());
  EXPECT_THAT(keys_of(*opened.table), ElementsAre("a", "a"));
  EXPECT_THAT(opened.warnings, ElementsAre(AllOf(HasSubstr("t.tar"), HasSubstr("2048"))));
}

TEST(TarSamples, AHardLinkMayClaimASizeOrHaveAPayload) {
  const auto link = [](const std::string& payload) {
    return tar_header({"l.txt", "", '1', "a.txt", octal(3, 11)}) + padded(payload);
  };
  const std::string one = tar_member({"a.txt", "one"});
  const std::string two = tar_member({"b.txt", "two"});
  for (const std::string& bytes : {one + link("") + two, one + link("one") + two}) {
    EXPECT_THAT(keys_of(*open_bytes(bytes + tar_end()).table), ElementsAre("a", "b"));
  }
}

TEST(WenetSamples, FollowLinksWithinTheArchiveAndStripTexts) {
  const std::string bytes =
      tar_member({"d/a.wav", "A"}) + tar_member({"d/a.txt", " eins \n"}) +
      tar_member({"d/b.flac", "", '2', "a.wav"}) + tar_member({"d/b.txt", "", '1', "d/a.txt"}) +
      tar_member({"d/c.wav", "C"}) + tar_member({"d/c.txt", " \n"}) + tar_member({"d/c.mp3", "M"}) +
      tar_member({"d/e.wav", "", '2', "/etc/passwd"}) + tar_member({"d/f.wav", "", '2', "f.wav"}) +
      tar_end();
  const auto opened = open_bytes(bytes, {}, TarGrouping::kWenet);
  EXPECT_THAT(keys_of(*opened.table), ElementsAre("d/a", "d/b", "d/c"));
  EXPECT_EQ(field_bytes(*opened.table, "x", 1), "A");
  EXPECT_EQ(field_bytes(*opened.table, "txt", 1), "eins");
  EXPECT_EQ(field_bytes(*opened.table, "x", 2), "M");  // the last wins
  EXPECT_EQ(field_bytes(*opened.table, "txt", 2), "");
  EXPECT_THAT(opened.warnings, ElementsAre(AllOf(HasSubstr("/etc/passwd"), HasSubstr("1 more"))));
  // A file shows what is stored.
  EXPECT_EQ(read_extents([&] {
              std::vector<Extent> extents;
              for (const StoredUnit& unit : opened.table->stored()) {
                if (unit.extension == "txt") {
                  unit.bytes->locate(0, extents);
                }
              }
              return extents;
            }()),
            " eins \n");
}

TEST(TarDamage, EachKindOfMemberThatIsLeftOutIsTold) {
  const TemporaryFolder folder;
  write_file(folder / "t.tar", tar_member({"a.txt", "1"}) + tar_member({"plain", "2"}) +
                                   tar_member({"b.txt", "", '2'}) + tar_member({"c.txt", "", '2'}) +
                                   tar_member({"d.txt", "", '6'}) + tar_member({"other", "3"}) +
                                   tar_member({"e.txt", "", '2'}) + tar_end());
  const Opened opened = open_records(kTar, folder / "t.tar");
  EXPECT_THAT(opened.warnings,
              ElementsAre(AllOf(HasSubstr("at byte 1024: member 'plain' has no extension"),
                                EndsWith("; left out (and 1 more members)")),
                          AllOf(HasSubstr("at byte 2048: member 'b.txt' is a symbolic link"),
                                EndsWith("; left out (and 2 more members)")),
                          AllOf(HasSubstr("at byte 3072: member 'd.txt' is no regular file"),
                                EndsWith("; left out"))));
}

TEST(TarDamage, IsNamedWithItsPlace) {
  const std::string one = tar_member({"a.txt", "1"});
  const auto bad_size = [&](const std::string& field) {
    return refusal_of(one + tar_header({"b.txt", "", '0', "", field}));
  };
  EXPECT_THAT(bad_size("00000009999"), AllOf(HasSubstr("t.tar at byte 1148"), HasSubstr("b.txt")));
  EXPECT_THAT(bad_size("77777777777"), HasSubstr("expected at most 0"));
  EXPECT_THAT(bad_size("\x80\0\0\0\x7f\xff\xff\xff\xff\xff\xff\xff"s), HasSubstr("at most 0"));
  EXPECT_THAT(bad_size(std::string(11, '\xff') + "\xf0"), HasSubstr("-16"));
  EXPECT_THAT(bad_size("\x80\x01\0\0\0\0\0\0\0\0\0\0"s), HasSubstr("octal or base-256"));
  std::string flipped = one + tar_member({"b.txt", "2"});
  flipped[1024] = 'c';
  EXPECT_THAT(refusal_of(flipped), AllOf(HasSubstr("at byte 1024"), HasSubstr("checksum")));
  EXPECT_THAT(refusal_of(one + tar_member({"L", "n.txt", 'L'})), HasSubstr("0 bytes"));
  EXPECT_THAT(refusal_of(one + tar_member({"x", "99 path=a\n", 'x'}) + one),
              HasSubstr("pax header begins"));
  EXPECT_THAT(refusal_of(one + tar_header({"L", "", 'L', "", octal(std::uint64_t{1} << 32, 11)})),
              HasSubstr("extension header"));
}

// GNU tar 1.34 and Python's tarfile list the same members, and end with success.
TEST(TarDamage, WhatFollowsTheEndIsPassedOver) {
  const std::string one = tar_member({"a.txt", "1"});
  const std::string zeroes(9 * 512, '\0');
  for (const std::string& end : {tar_end(), tar_end() + zeroes, std::string(512, '\0')}) {
    const bool whole = end.size() > 512;
    for (const std::string& garbage : {"\n"s, "garbage"s, std::string(511, 'x'),
                                       std::string(512, 'x'), std::string(100'000, 'x')}) {
      const TemporaryFolder folder;
      write_file(folder / "t.tar", one + end + garbage + tar_end() + one);
      const Opened opened = open_records(kTar, folder / "t.tar");
      EXPECT_THAT(read_records(*opened.table), ElementsAre("1"));
      EXPECT_THAT(opened.warnings,
                  ElementsAre(AllOf(
                      HasSubstr("t.tar at byte " + std::to_string(one.size() + end.size()) + ": "),
                      HasSubstr(whole ? "follows the end" : "a single block of zeroes"),
                      HasSubstr("passed over"), HasSubstr("members may be missing"))));
    }
  }
  // It may be another archive.
  std::string damaged = one;
  damaged[0] ^= 1;
  const TemporaryFolder folder;
  write_file(folder / "t.tar", one + tar_end() + damaged + one + tar_end());
  const Opened opened = open_records(kTar, folder / "t.tar");
  EXPECT_THAT(read_records(*opened.table), ElementsAre("1"));
  EXPECT_THAT(opened.warnings, ElementsAre(HasSubstr("members may be missing")));
  // Another archive is read, and must be whole.
  EXPECT_THAT(refusal_of(one + tar_end() + tar_header({"b.txt", std::string(999, 'b')})),
              HasSubstr("b.txt"));
}

// A member of `real_size` bytes with "12345678" at `offset`, as GNU tar's pax 0.1 has it.
std::string sparse_member(const std::string& name, std::uint64_t real_size, std::uint64_t offset,
                          const std::string& stored) {
  const auto record = [](const std::string& text) {
    std::size_t n = text.size() + 3;
    n = std::to_string(n).size() + text.size() + 2;
    return std::to_string(n) + " " + text + "\n";
  };
  const std::string records =
      record("GNU.sparse.size=" + std::to_string(real_size)) +
      record("GNU.sparse.map=" + std::to_string(offset) + "," + std::to_string(stored.size()));
  return tar_member({"x", records, 'x'}) + tar_member({name, stored});
}

Plan plan_of(const Column& column, std::uint64_t record, ByteRange range) {
  Plan plan;
  column.plan(record, range, plan);
  return plan;
}

TEST(TarSparse, HolesAreFillHoweverLargeTheyAre) {
  const TemporaryFolder folder;
  const std::uint64_t most = std::uint64_t{1} << 62;
  write_file(folder / "t.tar", sparse_member("a.bin", most, most / 2, "12345678") + tar_end());
  const Opened opened = open_records(kTar, folder / "t.tar");
  EXPECT_THAT(opened.warnings, ElementsAre());
  const auto column = make_raw_column(opened.table->fields()[0].bytes);
  Item item;
  column->inspect(0, item);
  EXPECT_EQ(item.shape, Shape{most});
  const Plan hole = plan_of(*column, 0, {7, std::uint64_t{1} << 40});
  ASSERT_EQ(hole.pieces().size(), 1U);
  EXPECT_EQ(hole.pieces()[0].kind, Piece::Kind::kFill);
  EXPECT_EQ(read_plan(plan_of(*column, 0, {most / 2 - 2, most / 2 + 10})),
            "\0\0"
            "12345678\0\0"s);
  EXPECT_EQ(read_plan(plan_of(*column, 0, {most - 3, most})), std::string(3, '\0'));
  for (const std::uint64_t beyond : {most + 1, UINT64_MAX / 2, UINT64_MAX}) {
    EXPECT_THAT(refusal_of(sparse_member("a.bin", beyond, 0, "12345678") + tar_end()),
                HasSubstr("the real size of a sparse member is " + std::to_string(beyond)));
  }
}

TEST(TarSparse, OfHolesNothingIsDecodedAsAWhole) {
  const TemporaryFolder folder;
  const std::uint64_t large = std::uint64_t{1} << 40;
  std::string npy = print_npy_header(DType::simple("|u1"), {large / 4, 2}, true);
  std::string mapped = print_npy_header(DType::simple("|u1"), {large / 4, 2}, false);
  write_file(folder / "t.tar", sparse_member("a.npy", npy.size() + large / 2, 0, npy) +
                                   sparse_member("a.b.npy", mapped.size() + large / 2, 0, mapped) +
                                   sparse_member("a.jpg", large, 0, "\xff\xd8\xff") +
                                   sparse_member("a.flac", large, 0, "fLaC") +
                                   sparse_member("a.txt", large, 0, "text") + tar_end());
  const Opened opened = open_records(kTar, folder / "t.tar");
  const auto field = [&](const std::string& extension, const std::string& name) {
    for (const Field& found : opened.table->fields()) {
      if (found.extension == extension && found.name == name) {
        return PayloadField{.bytes = found.bytes,
                            .table = *opened.table,
                            .verifier = strict_verifier(),
                            .named = true};
      }
    }
    throw std::runtime_error(name);
  };
  const auto damage = [](const std::shared_ptr<const Column>& column) {
    Item item;
    column->inspect(0, item);
    return std::string(item.damage != nullptr ? item.damage->error.what() : "");
  };
  EXPECT_THAT(damage(make_npy_column(field("npy", "x"))), HasSubstr("holes"));
  EXPECT_EQ(damage(make_npy_column(field("npy", "b"))), "");
  EXPECT_EQ(read_plan(plan_of(*make_npy_column(field("npy", "b")), 0, {large / 2 - 1, large / 2})),
            std::string(1, '\0'));
  EXPECT_THAT(damage(make_image_column(field("jpg", "jpg"))), HasSubstr("decoded as a whole"));
  EXPECT_THAT(damage(make_audio_column(field("flac", "flac"))), HasSubstr("decoded as a whole"));
  EXPECT_THAT([&] { make_text_column(field("txt", "txt")); },
              ::testing::ThrowsMessage<Error>(HasSubstr("holes")));
}

TEST(TarDamage, SparseMapsMustFitTheirMember) {
  const auto sparse = [](const std::string& records) {
    return refusal_of(tar_member({"x", records, 'x'}) + tar_member({"s.bin", "12345678"}) +
                      tar_end());
  };
  const auto record = [](const std::string& text) {
    const std::size_t n = text.size() + 2 + (text.size() + 4 >= 100 ? 3 : 2);
    return std::to_string(n) + " " + text + "\n";
  };
  const std::string size = record("GNU.sparse.size=100");
  EXPECT_EQ(sparse(size + record("GNU.sparse.map=10,4,20,4")), "");
  EXPECT_THAT(sparse(size + record("GNU.sparse.map=98,4")), HasSubstr("98 + 4"));
  EXPECT_THAT(sparse(size + record("GNU.sparse.map=20,4,10,4")), HasSubstr("behind 24"));
  EXPECT_THAT(sparse(size + record("GNU.sparse.map=0,9")), HasSubstr("8 stored"));
  EXPECT_THAT(sparse(record("GNU.sparse.map=0,8")), HasSubstr("no real size"));
  EXPECT_EQ(sparse(record("GNU.sparse.size=999999999999") + record("GNU.sparse.map=0,8")), "");
}

// Headers may follow each other without end, each with a part of the map.
TEST(TarExtensions, PiecesAreCountedWhileTheyAreRead) {
  const TarFault fault = [](const std::string& text) { return Error(ErrorKind::kCorrupt, text); };
  std::string records;
  for (int i = 0; i < 1000; ++i) {
    records += "23 GNU.sparse.offset=1\n25 GNU.sparse.numbytes=0\n";
  }
  TarExtensions extensions;
  for (std::size_t i = 0; i < kMostClaimedPieces / 1000; ++i) {
    parse_pax(records, extensions, fault);
  }
  ASSERT_GT(extensions.pieces.size(), kMostClaimedPieces - 1000);
  const auto too_many = ::testing::ThrowsMessage<Error>(HasSubstr("more than 1048576 pieces"));
  EXPECT_THAT([&] { parse_pax(records, extensions, fault); }, too_many);
  EXPECT_EQ(extensions.pieces.size(), kMostClaimedPieces);

  std::string map = "GNU.sparse.map=";
  for (std::size_t i = 0; i <= kMostClaimedPieces; ++i) {
    map += "0,0,";
  }
  map = std::to_string(map.size() + 9) + " " + map + "\n";
  EXPECT_THAT([&] { parse_pax(map, extensions, fault); }, too_many);
}

TEST(TarExtensions, PiecesThatTouchAreOne) {
  const TarFault fault = [](const std::string& text) { return Error(ErrorKind::kCorrupt, text); };
  std::vector<SparsePiece> pieces = {{0, 0}, {10, 4}, {14, 0}, {14, 6}, {30, 0}, {30, 5}, {40, 0}};
  check_sparse(pieces, 100, 15, fault);
  ASSERT_EQ(pieces.size(), 2U);
  EXPECT_EQ(pieces[0].offset, 10U);
  EXPECT_EQ(pieces[0].nbytes, 10U);
  EXPECT_EQ(pieces[1].offset, 30U);
  EXPECT_EQ(pieces[1].nbytes, 5U);
  pieces.clear();
  for (std::uint64_t i = 0; i <= kMostSparsePieces; ++i) {
    pieces.push_back({2 * i, 1});
  }
  EXPECT_THROW(check_sparse(pieces, 4 * kMostSparsePieces, kMostSparsePieces + 1, fault), Error);
  for (SparsePiece& piece : pieces) {
    piece.offset /= 2;
  }
  check_sparse(pieces, 4 * kMostSparsePieces, kMostSparsePieces + 1, fault);
  EXPECT_EQ(pieces.size(), 1U);
}

// Zeroes behind some bytes.
class ZeroTail : public ByteSource {
 public:
  ZeroTail(std::string head, std::uint64_t nbytes)
      : ByteSource("t.tar", nbytes, 0), head_(std::move(head)) {}

 private:
  void do_read(std::uint64_t offset, std::span<std::byte> out) const override {
    std::fill(out.begin(), out.end(), std::byte{0});
    for (std::size_t i = 0; i < out.size() && offset + i < head_.size(); ++i) {
      out[i] = static_cast<std::byte>(head_[offset + i]);
    }
  }
  std::string head_;
};

TEST(TarDamage, ASearchThatIsGivenUpIsSaid) {
  for (const std::uint64_t nbytes : {std::uint64_t{1} << 20, std::uint64_t{3} << 29}) {
    OpenContext context;
    std::vector<std::string> warnings;
    context.warn = [&](const std::string& text) { warnings.push_back(text); };
    TarIndexer indexer(TarGrouping::kWebDataset, context);
    indexer.add_shard(std::make_shared<ZeroTail>(tar_member({"a.txt", "1"}), nbytes));
    EXPECT_EQ(indexer.finish().size(), 1U);
    EXPECT_EQ(warnings.size(), nbytes > 1 << 30 ? 1U : 0U);
  }
}

TEST(TarDamage, PermissiveKeepsWholeSamplesOnly) {
  OpenContext permissive;
  permissive.permissive = true;
  std::string bytes;
  for (const char* key : {"a", "b", "c"}) {
    bytes += tar_member({key + ".txt"s, "1"}) + tar_member({key + ".cls"s, "2"});
  }
  const std::size_t member = 1024;
  // Cut in a payload: its name tells which sample lacks something.
  EXPECT_THAT(keys_of(*open_bytes(bytes.substr(0, 5 * member + 512), permissive).table),
              ElementsAre("a", "b"));
  EXPECT_THAT(keys_of(*open_bytes(bytes.substr(0, 4 * member + 512), permissive).table),
              ElementsAre("a", "b"));
  // Cut in a header: the samples before tell what one has.
  EXPECT_THAT(keys_of(*open_bytes(bytes.substr(0, 5 * member + 100), permissive).table),
              ElementsAre("a", "b"));
  EXPECT_THAT(keys_of(*open_bytes(bytes.substr(0, 4 * member + 100), permissive).table),
              ElementsAre("a", "b"));
}

TEST(TarCompressed, EveryPackingHoldsTheSameRecords) {
  const auto plain = open_records(kTar, data_path("tar/comp/plain-0.tar"));
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(data_path("tar/comp"))) {
    OneChunkCache cache;
    OpenContext context;
    context.cache = &cache;
    const auto opened = open_records(kTar, entry.path(), context);
    EXPECT_EQ(keys_of(*opened.table), keys_of(*plain.table)) << entry.path();
    EXPECT_EQ(read_records(*opened.table), read_records(*plain.table)) << entry.path();
    ++files;
  }
  EXPECT_GE(files, 14);
}

TEST(TarCompressed, WithASpoolNothingIsDecodedTwiceAndNothingIsLeft) {
  const TemporaryFolder folder;
  const auto plain = open_records(kTar, data_path("tar/comp/plain-0.tar"));
  for (const char* name :
       {"gz-0.tar.gz", "zst-0.tar.zst", "xz-0.tar.xz", "bz2-0.tar.bz2", "lz4-0.tar.lz4"}) {
    OneChunkCache cache;
    OpenContext context;
    context.cache = &cache;
    context.unpack_pool = std::make_shared<UnpackPool>();
    context.unpack_pool->spool = Spool::create(folder / "spool");
    const auto opened = open_records(kTar, data_path("tar/comp/"s + name), context);
    EXPECT_EQ(read_records(*opened.table), read_records(*plain.table)) << name;
    EXPECT_EQ(cache.decoded(), 0U) << name;
    EXPECT_THAT(opened.table->sources().front()->access(), HasSubstr(folder / "spool"));
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder / "spool"));
}

TEST(TarRecognised, ByItsFirstBlockWhateverItsName) {
  for (const char* name : {"dialect/v7.tar", "dialect/gnu.tar", "comp/xz-0.tar.xz",
                           "comp/bz2-0.tar.bz2", "comp/zst-0.tar.zst", "comp/gz-0.tar.gz",
                           "comp/lz4-0.tar.lz4", "comp/lz4-skippable-0.tar.lz4"}) {
    EXPECT_TRUE(kTar.recognises(locate_file(data_path("tar/"s + name)))) << name;
  }
  for (const char* name : {"dialect/empty.tar", "bad/not-a-tar.tar", "bad/zero-bytes.tar",
                           "wenet/data.list", "wav/s16-mono.wav"}) {
    EXPECT_FALSE(kTar.recognises(locate_file(data_path("tar/"s + name)))) << name;
  }
}

}  // namespace

}  // namespace npyfs::testing
